#!/usr/bin/env python3
"""Tests of check_messages.py."""

import unittest

from check_messages import violations


def lines(source):
    return [line for line, _ in violations(source)]


class CheckMessages(unittest.TestCase):
    def test_an_option_in_a_literal_is_found_on_its_line(self):
        self.assertEqual(lines('f();\nfail("use --planner tide");\n'), [2])
        self.assertEqual(lines('a("x"\n  "y --seed");'), [2])

    def test_raw_literals_count(self):
        self.assertEqual(lines('R"(one\ntwo --json)"'), [2])
        self.assertEqual(lines('R"x(a )" --json)x"'), [1])

    def test_comments_do_not_count(self):
        self.assertEqual(lines('// "--planner"\n/* "--seed" */ int i;'), [])

    def test_dashes_and_decrements_do_not_count(self):
        self.assertEqual(lines('"a -- b"; "-----"; --i; c = \'"\'; --d;'), [])

    def test_escaped_quotes_do_not_end_a_literal(self):
        self.assertEqual(lines(r'"say \"--x\" now"'), [1])

    def test_a_quote_in_a_comment_opens_nothing(self):
        self.assertEqual(lines('// it\'s "so\nfail("no");\n--i;'), [])


if __name__ == "__main__":
    unittest.main()
