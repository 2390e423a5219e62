#!/usr/bin/env python3
"""Tests of check_names.py."""

import unittest

from check_names import types


def names(source):
    return [name for _, name in types(source)]


class CheckNames(unittest.TestCase):
    def test_types_have_the_names_of_their_namespaces(self):
        self.assertEqual(names("namespace a {\nnamespace b::c {\nstruct X {\n};\n}  // namespace b::c\n"
                               "class Y : public Z {\n};\nenum class E : char { one };\n"
                               "}  // namespace a\n"), ["a::b::c::X", "a::Y", "a::E"])

    def test_those_of_one_file_do_not_count(self):
        self.assertEqual(names("namespace a {\nnamespace {\nstruct X {\n};\n}  // namespace\n"
                               "struct Y {\n  struct Inner {\n  };\n};\n}  // namespace a\n"), ["a::Y"])

    def test_declarations_do_not_count(self):
        self.assertEqual(names("namespace a {\nstruct X;\nclass Y;\n}  // namespace a\n"), [])

    def test_lines_are_those_of_the_file(self):
        self.assertEqual(list(types("namespace a {\n\nstruct X {\n")), [(3, "a::X")])


if __name__ == "__main__":
    unittest.main()
