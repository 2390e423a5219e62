#!/usr/bin/env python3
"""Tests of check_sizes.py: small sources, and what the tool finds in them."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True
import check_sizes  # noqa: E402

SOURCE = """// Head.
#include <vector>
#define BRACE {

namespace a {
namespace {

// A table, with a brace } in its comment.
const std::vector<int> kTable = {
    {1, f(2)},
};
constexpr char kOpen = '{';
const char* kText = "} {";
const char* kRaw = R"x({{)x";
auto lambda = [](int x) {
  return x;
};

enum class Kind { one, two };

template <class T>
struct Pair {
  explicit Pair(int a) : first{a}, second(1) {
    go();
  }
  bool operator==(const Pair&) const = default;
  bool operator<(const Pair& other) const {
    return first < other.first;
  }
  int first = f({1, 2});
 private:
  int last() const { return 1; }
  std::vector<int> all{1, 2};
};

}  // namespace

std::vector<std::pair<int, int>> Made::make_all(
    const std::vector<int>& from, int to = 3) {
  for (int x : from) {
    if (x) call([&] { return x; });
  }
}

Made::~Made() {
}

}  // namespace a
"""


def function_of(lines):
    return "void f() {\n" + "  g();\n" * (lines - 2) + "}\n"


class CheckSizes(unittest.TestCase):
    def test_finds_functions(self):
        self.assertEqual(list(check_sizes.functions(SOURCE)), [
            ("Pair", 23, 25), ("operator<", 27, 29), ("last", 32, 32), ("make_all", 38, 43),
            ("~Made", 45, 46)])

    def messages(self, source):
        return list(check_sizes.violations(source))

    def test_refuses_a_long_function(self):
        self.assertEqual(self.messages(function_of(60)), [])
        self.assertEqual(self.messages("\n" + function_of(61)),
                         [(2, "f has 61 lines, more than 60")])

    def test_refuses_a_long_file(self):
        self.assertEqual(self.messages("\n" * 400), [])
        self.assertEqual(self.messages("\n" * 401), [(1, "401 lines, more than 400")])

    def test_the_head_of_a_file_may_say_why(self):
        head = "// Things.\n// Over 60 lines: f, g: one case for each kind.\n"
        self.assertEqual(self.messages(head.replace(", g", "") + function_of(61)), [])
        self.assertEqual(self.messages(head + function_of(61)),
                         [(2, "g is not over 60 lines: nothing to allow")])
        self.assertEqual(self.messages("// Over 400 lines: a table.\n" + "\n" * 400), [])
        self.assertEqual(self.messages("// Over 400 lines: a table.\n"),
                         [(1, "not over 400 lines: nothing to allow")])

    def test_only_the_head_may(self):
        self.assertEqual(len(self.messages("\n// Over 400 lines: a table.\n" + "\n" * 400)), 1)


if __name__ == "__main__":
    unittest.main()
