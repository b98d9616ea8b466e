"""The lexical index in PostgreSQL: the terms of every record, and the inverted list of some.

A namespace that is ranked as a whole is read as a whole, so that nobody looks a term up in it:
its records' terms are enough. The inverted list costs more than all else of a save; a namespace
is entered into it when it grows too large for that, and stays there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from zero_mem.storage.base import LARGEST, MOST_TERMS, Final, NamespaceRow, Posting
from zero_mem.storage.postgres_hosts import PostgresHosts
from zero_mem.storage.postgres_text import read_terms, write_term, write_terms

_HOLDS = "string_to_array(terms, ' ') @> ARRAY[{}::text] COLLATE \"C\" AND listed"
"""The condition that the inverted list answers."""


class PostgresLexicon(PostgresHosts):
    """The part of a PostgreSQL transaction that reads and writes terms."""

    def __init__(self, *given: Any, **place: Any) -> None:
        super().__init__(*given, **place)
        self._inverted: dict[int, Mapping[str, list[Posting]]] = {}

    # Reading

    def frequencies(self, row: NamespaceRow, terms: Collection[str]) -> dict[str, int]:
        if not self._is_listed(row):
            held = self._inverted_here(row)
            return {term: len(held[term]) for term in terms if term in held}
        sql = (
            f"SELECT (SELECT count(*) FROM {self._schema}.lexicon WHERE namespace = %s"
            f" AND {_HOLDS.format('t.term')})"
            " FROM unnest(%s::text[]) WITH ORDINALITY AS t (term, place) ORDER BY t.place"
        )
        asked = list(terms)
        written = [f"{row.number}:{write_term(term)}" for term in asked]
        found = self._at(row).run(sql, (row.number, written))
        return {term: n for term, (n,) in zip(asked, found, strict=True) if n}

    def postings(self, row: NamespaceRow, term: str) -> list[Posting]:
        if not self._is_listed(row):
            return list(self._inverted_here(row).get(term, ()))
        sql = (
            "SELECT position, cardinality(array_positions(string_to_array(terms, ' '), %s::text)),"
            f" length FROM {self._schema}.lexicon WHERE namespace = %s"
            f" AND {_HOLDS.format('%s')} ORDER BY position"
        )
        written = f"{row.number}:{write_term(term)}"
        found = self._at(row).run(sql, (written, row.number, written))
        return [Posting(*columns) for columns in found]

    def documents(self, row: NamespaceRow, positions: Collection[int]) -> dict[int, Sequence[str]]:
        condition = " AND position = ANY(%s::bigint[])"
        return dict(self._read_terms(row, condition, (list(positions),)))

    def _read_terms(
        self, row: NamespaceRow, condition: str, values: Sequence[object]
    ) -> Iterator[tuple[int, Sequence[str]]]:
        sql = (
            f"SELECT position, terms, long_terms FROM {self._schema}.lexicon"
            f" WHERE namespace = %s{condition}"
        )
        prefix = f"{row.number}:"
        found = self._at(row).run(sql, (row.number, *values))
        return ((position, read_terms(prefix, terms, long)) for position, terms, long in found)

    def _inverted_here(self, row: NamespaceRow) -> Mapping[str, list[Posting]]:
        """Invert the terms of a namespace that is not in the list, once a transaction."""
        held = self._inverted.get(row.number)
        if held is None:
            made: dict[str, list[Posting]] = {}
            for position, terms in self._read_terms(row, " ORDER BY position", ()):
                for term, count in Counter(terms).items():
                    made.setdefault(term, []).append(Posting(position, count, len(terms)))
            held = self._inverted[row.number] = made
        return held

    # Writing

    def _indexed(self, row: NamespaceRow, finals: Sequence[Final]) -> Sequence[Sequence[object]]:
        """Write the terms of records, count them, and enter a namespace that has grown too large.

        Returns:
            A row of the table each.
        """
        if not finals:
            return []
        prefix = f"{row.number}:"
        rows = [(f.after.position, *write_terms(prefix, f.terms or ())) for f in finals]
        row.documents += len(rows)
        row.length += sum(each[1] for each in rows)
        self._inverted.pop(row.number, None)
        if not self._is_listed(row) and (row.documents > LARGEST or row.length > MOST_TERMS):
            self._enter_list(row)
        return rows

    def _enter_list(self, row: NamespaceRow) -> None:
        for table in ("lexicon", "counter"):
            sql = f"UPDATE {self._schema}.{table} SET listed = true WHERE namespace = %s"
            self._at(row).defer(f"{sql} AND NOT listed", (row.number,))
        self._listed.add(row.number)

    def _drop_terms(self, row: NamespaceRow, positions: Sequence[int]) -> None:
        if not positions:
            return
        sql = (
            f"DELETE FROM {self._schema}.lexicon WHERE namespace = %s"
            " AND position = ANY(%s::bigint[]) RETURNING length"
        )
        self._inverted.pop(row.number, None)
        for (length,) in self._at(row).run(sql, (row.number, list(positions))):
            row.documents -= 1
            row.length -= length
