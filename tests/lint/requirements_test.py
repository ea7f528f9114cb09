"""scripts/requirements must not be fooled: each case here is a tree that it has to judge."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "requirements"


def case(name, outcome="passed"):
    inner = {"passed": "", "failed": "<failure message='x'/>", "skipped": "<skipped message='x'/>"}
    status = {"passed": "run", "failed": "fail", "skipped": "notrun"}[outcome]
    return f'<testcase name="{name}" status="{status}">{inner[outcome]}</testcase>'


class Requirements(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        (self.root / "tests").mkdir()
        self.page("R-FOO-01 first", "R-FOO-02 second", "R-BAR-10 tenth")
        self.write("open.txt", "")
        self.report()

    def write(self, name, text):
        (self.root / name).write_text(text, encoding="utf-8")

    def page(self, *items):
        self.write("page.md", "# Page\n\n" + "".join(
            f"- **{one}** *{title.capitalize()}.* Text.\n" for one, title in (item.split(" ", 1) for item in items)))

    def report(self, *cases, name="report.xml"):
        self.write(name, f'<testsuite name="x">{"".join(cases)}</testsuite>')

    def run_script(self, *arguments, reports=("report.xml",)):
        command = [sys.executable, str(SCRIPT), "--tests", str(self.root / "tests"),
                   "--page", str(self.root / "page.md"), "--open", str(self.root / "open.txt")]
        for report in reports:
            command += ["--report", str(self.root / report)]
        done = subprocess.run(command + list(arguments), capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def assert_covered(self, source, test_name, *areas):
        self.write("tests/a_test.cpp", source)
        self.report(case(test_name))
        code, output = self.run_script("--check", *(areas or ["R-FOO-01"]))
        self.assertEqual(code, 0, output)

    def assert_uncovered(self, source, *cases):
        self.write("tests/a_test.cpp", source)
        self.report(*cases)
        code, output = self.run_script("--check", "R-FOO-01")
        self.assertEqual(code, 1, output)
        self.assertIn("R-FOO-01", output)

    def test_citation_on_the_test_line(self):
        self.assert_covered("TEST(A, Does) {  // R-FOO-01\n}\n", "A.Does")

    def test_citation_directly_above(self):
        self.assert_covered("// Why it matters.\n// R-FOO-01\nTEST_F(A, Does) {\n}\n", "A.Does")

    def test_citation_in_any_comment_line_of_the_block_above(self):
        self.assert_covered("// R-FOO-01: as promised,\n// at length.\nTEST(A, Does) {\n}\n", "A.Does")

    def test_citation_after_a_broken_line(self):
        self.assert_covered("TEST(A,\n     Does) {  // R-FOO-01\n}\n", "A.Does")

    def test_several_ids_and_ranges(self):
        self.assert_covered("TEST(A, Does) {  // R-FOO-01..02, R-BAR-10\n}\n", "A.Does", "FOO", "BAR")

    def test_property(self):
        self.assert_covered("// R-FOO-01\nRC_GTEST_PROP(A, Holds, (int x)) {\n}\n", "A.Holds")

    def test_parameterised_instance_by_number(self):
        self.assert_covered("TEST_P(A, Does) {  // R-FOO-01\n}\n", "All/A.Does/0")

    def test_parameterised_instance_by_value(self):
        self.assert_covered("TEST_P(A, Does) {  // R-FOO-01\n}\n", "All/A.Does/http://x.y/z")

    def test_typed_instance(self):
        self.assert_covered("TYPED_TEST(A, Does) {  // R-FOO-01\n}\n", "A&lt;int&gt;.Does")

    def test_blank_line_breaks_the_block_above(self):
        self.assert_uncovered("// R-FOO-01\n\nTEST(A, Does) {\n}\n", case("A.Does"))

    def test_citation_inside_the_body_does_not_count(self):
        self.assert_uncovered("TEST(A, Does) {\n    // R-FOO-01\n}\n", case("A.Does"))

    def test_citation_in_code_does_not_count(self):
        self.assert_uncovered('TEST(A, Does) { auto x = "R-FOO-01";\n}\n', case("A.Does"))

    def test_citation_above_a_neighbour_does_not_count(self):
        self.assert_uncovered("// R-FOO-01\nint x;\nTEST(A, Does) {\n}\n", case("A.Does"))

    def test_longer_number_is_another_id(self):
        self.page("R-FOO-01 first", "R-FOO-011 other")
        self.assert_uncovered("TEST(A, Does) {  // R-FOO-011\n}\n", case("A.Does"))

    def test_test_that_was_not_run(self):
        self.assert_uncovered("TEST(A, Does) {  // R-FOO-01\n}\n", case("A.DoesMore"))

    def test_test_that_was_skipped(self):
        self.assert_uncovered("TEST(A, Does) {  // R-FOO-01\n}\n", case("A.Does", "skipped"))

    def test_test_that_failed(self):
        self.assert_uncovered("TEST(A, Does) {  // R-FOO-01\n}\n", case("A.Does", "failed"))

    def test_one_failed_instance_spoils_the_test(self):
        self.assert_uncovered("TEST_P(A, Does) {  // R-FOO-01\n}\n",
                              case("All/A.Does/0"), case("All/A.Does/1", "failed"))

    def test_commented_out_test_does_not_count(self):
        self.assert_uncovered("// TEST(A, Does) {  // R-FOO-01\n// }\n", case("A.Does"))

    def test_area_that_is_not_asked_for_is_left_alone(self):
        self.write("tests/a_test.cpp", "TEST(A, Does) {  // R-FOO-01, R-FOO-02\n}\n")
        self.report(case("A.Does"))
        self.assertEqual(self.run_script("--check", "FOO")[0], 0)
        self.assertEqual(self.run_script("--check", "BAR")[0], 1)
        self.assertEqual(self.run_script("--check")[0], 1)

    def test_range_of_areas(self):
        self.write("tests/a_test.cpp", "TEST(A, Does) {  // R-FOO-01\n}\n")
        self.report(case("A.Does"))
        code, output = self.run_script("--check", "R-FOO-01..09")
        self.assertEqual(code, 1)
        self.assertIn("R-FOO-02", output)

    def test_open_id_is_shown_and_does_not_fail(self):
        self.write("open.txt", "# why\nR-FOO-01\twaits for spring\nR-FOO-02\tdecided against\n")
        code, output = self.run_script("--check", "FOO")
        self.assertEqual(code, 0, output)
        self.assertIn("waits for spring", output)

    def test_open_id_that_got_its_test_is_pointed_out(self):
        self.write("open.txt", "R-FOO-01\twaits for spring\n")
        self.write("tests/a_test.cpp", "TEST(A, Does) {  // R-FOO-01\n}\n")
        self.report(case("A.Does"))
        code, output = self.run_script("--check", "R-FOO-01")
        self.assertEqual(code, 0)
        self.assertIn("has a test now", output)

    def test_citation_of_an_unknown_id_fails(self):
        self.write("tests/a_test.cpp", "TEST(A, Does) {  // R-FOO-01, R-FOO-77\n}\n")
        self.report(case("A.Does"))
        code, output = self.run_script("--check", "R-FOO-01")
        self.assertEqual(code, 1)
        self.assertIn("R-FOO-77", output)

    def test_unknown_id_in_the_open_file_fails(self):
        self.write("open.txt", "R-FOO-77\twaits\nR-FOO-01\twaits\nR-FOO-02\twaits\n")
        self.assertEqual(self.run_script("--check", "FOO")[0], 1)

    def test_unknown_area_fails(self):
        self.assertEqual(self.run_script("--check", "NONE")[0], 1)

    def test_missing_report_fails(self):
        code, output = self.run_script("--check", "FOO", reports=("absent.xml",))
        self.assertEqual(code, 1)
        self.assertIn("run the tests first", output)

    def test_reports_add_up(self):
        self.write("tests/a_test.cpp", "TEST(A, Does) {  // R-FOO-01\n}\nTEST(B, Does) {  // R-FOO-02\n}\n")
        self.report(case("A.Does"))
        self.report(case("B.Does"), name="second.xml")
        self.assertEqual(self.run_script("--check", "FOO")[0], 1)
        self.assertEqual(self.run_script("--check", "FOO", reports=("report.xml", "second.xml"))[0], 0)

    def test_listing_names_tests_and_places(self):
        self.write("tests/a_test.cpp", "\nTEST(A, Does) {  // R-FOO-01\n}\n")
        self.report(case("A.Does"))
        code, output = self.run_script()
        self.assertEqual(code, 0)
        self.assertRegex(output, r"R-FOO-01  First\n +passed +A\.Does  tests/a_test\.cpp:2")
        self.assertRegex(output, r"R-FOO-02  Second\n +no test")

    def test_title_may_be_broken_over_lines(self):
        self.write("page.md", "- **R-FOO-01** *A title\n  of two lines.* Text.\n")
        self.assertIn("R-FOO-01  A title of two lines\n", self.run_script()[1])

    def test_decisions_and_citations_on_the_page_are_no_requirements(self):
        self.write("page.md", "- **R-FOO-01** *First.* See R-FOO-02.\n- **C-01** *Choice.* R-BAR-10.\n")
        self.assertIn("1 requirements:", self.run_script()[1])

    def test_id_that_is_defined_twice_fails(self):
        self.page("R-FOO-01 first", "R-FOO-01 again")
        code, output = self.run_script()
        self.assertEqual(code, 1)
        self.assertIn("page.md:4: R-FOO-01 stands there twice", output)

    def test_requirement_without_a_title_fails(self):
        self.write("page.md", "- **R-FOO-01** Text.\n")
        code, output = self.run_script()
        self.assertEqual(code, 1)
        self.assertIn("has no title", output)

    def test_page_without_requirements_fails(self):
        self.write("page.md", "# Page\n")
        self.assertEqual(self.run_script()[0], 1)


if __name__ == "__main__":
    unittest.main()
