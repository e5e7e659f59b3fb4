"""Options of tables whose text compares exactly, as SQLite's and PostgreSQL's does.

MariaDB's text by default has 'A' equal to 'a', and even its binary collation has 'a' equal to 'a '. A fleet
has not: two providers that only there are one would be refused by a key that no command knows of.
"""

from typing import Any

EXACT: dict[str, Any] = {
    f"{dialect}_{option}": value
    for dialect in ("mariadb", "mysql")
    for option, value in (
        ("engine", "InnoDB"),
        ("default_charset", "utf8mb4"),
        ("collate", "utf8mb4_nopad_bin"),
    )
}
"""To be given to every table, here and in migrations: ``sa.Table(..., **EXACT)``."""
