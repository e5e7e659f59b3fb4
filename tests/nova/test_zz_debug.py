import importlib.util, pytest
from pathlib import Path
spec=importlib.util.spec_from_file_location("tes", Path(__file__).with_name("test_equal_states.py")); m=importlib.util.module_from_spec(spec); spec.loader.exec_module(m)
def test_x(nova, tmp_path):
    d=m.NovaDatabases(nova, tmp_path)
    orig=m.chosen
    f,ws,o=orig(0)
    bad=[]
    for w in ws:
        m.chosen=lambda seed: (f,[w],{k:dict(v) for k,v in o.items()})
        try: d.compare(0)
        except AssertionError as e: bad.append((w,str(e)[:700]))
    for b in bad: print(b)
    assert 0
