// Checks of a page, called by page_checks.py. Faults are texts.

const named = (each) => each?.outerHTML.slice(0, 140);

// What the Tab key reaches, in the order of the page. Of the choices of a radio group it reaches one.
function reached() {
  const all = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']";
  return [...document.querySelectorAll(all)]
    .filter((each) => !each.disabled && each.tabIndex >= 0)
    .filter((each) => each.checkVisibility({ visibilityProperty: true }))
    .filter((each) => each.type !== "radio" || each.checked || !chosenBeside(each));
}

function chosenBeside(radio) {
  const group = `input[type=radio][name="${CSS.escape(radio.name)}"]:checked`;
  return (radio.form ?? document).querySelector(group);
}

function firstInContent() {
  return reached().findIndex((each) => each.closest("#main"));
}

// The number of stops, that of the one that has the focus, and its element.
function focusedStop() {
  const stops = reached();
  return [stops.length, stops.indexOf(document.activeElement), named(document.activeElement)];
}

function focusFaults() {
  const look = (each) =>
    [each, each.closest("label") ?? each]
      .map((one) => getComputedStyle(one))
      .map((style) => [style.outlineStyle, style.outlineWidth, style.boxShadow, style.borderColor].join(" "))
      .join("; ");
  const found = [];
  document.activeElement?.blur();
  for (const each of reached()) {
    const before = look(each);
    each.focus({ focusVisible: true, preventScroll: true });
    if (document.activeElement !== each) found.push(`cannot have the focus: ${named(each)}`);
    else if (look(each) === before) found.push(`does not show that it has the focus: ${named(each)}`);
    each.blur();
  }
  return found;
}

// What a mouse can click and no key reaches.
function mouseFaults() {
  const keys = new Set(reached());
  const clicked = "[onclick], [role=button], [role=link], [hx-trigger^=click], a:not([href])";
  return [...document.querySelectorAll(clicked)]
    .filter((each) => each.checkVisibility() && !keys.has(each))
    .map((each) => `only for a mouse: ${named(each)}`);
}

// Text of others that became more than text, or turns the text beside it around.
function foreignFaults() {
  const made = "script:not([src]), img[src=x], [onerror], [onmouseover], [onload]";
  const found = [...document.querySelectorAll(made)].map((each) => `made of a text: ${named(each)}`);
  const texts = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const inside = texts.currentNode.parentElement;
    const turns = /[\u202a-\u202e\u2066-\u2069]/.test(texts.currentNode.data);
    if (turns && !inside.closest("bdi, title, option, textarea, desc"))
      found.push(`its direction is not isolated: ${named(inside)}`);
  }
  return found;
}
