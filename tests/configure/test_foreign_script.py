from tfwright.configure.dialect import of_tensorflow
from tfwright.documents.release import ExactRelease


def test_a_script_of_other_authors_is_taken_for_the_release_that_it_imitates() -> None:
    version = ExactRelease(1, 12)
    foreign = {"configure.py": "def ask(question): ...\nask('TF_NEED_IGNITE')\n"}
    assert of_tensorflow(version, "Linux", (), foreign) == of_tensorflow(version, "Linux")
