"""Sentences with the words from which a page makes them in its language."""

import json
import pickle

import pytest

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import Sentence, join, say, say_n, with_words, words_of
from jupyter_dist.protocol.wire.places import describe_line


def test_a_sentence_is_its_english_text_and_remembers_its_template_and_values():
    place = describe_line("<ipython-input-4-abc>", 2, "dist.barrier()")
    sentence = say("Rank %1 is at %2.", 3, place)
    assert sentence == "Rank 3 is at line 2 of cell [4]: dist.barrier()."
    assert json.loads(json.dumps(sentence)) == sentence
    (words,) = words_of(sentence)
    assert (words["text"], words["values"][0]) == ("Rank %1 is at %2.", 3)
    assert words["values"][1][0]["text"] == "line %1 of %2: %3"
    assert words["values"][1][0]["values"][1] == [{"text": "cell [%1]", "plural": None, "values": ["4"]}]
    assert words_of("plain") is None
    again = pickle.loads(pickle.dumps(sentence))
    assert (again, words_of(again)) == (sentence, [words])


def test_numbers_and_sentences_in_a_row():
    assert [say_n("%1 rank", "%1 ranks", number) for number in (1, 2)] == ["1 rank", "2 ranks"]
    both = join(say("One."), None, "", "Two, plain.", say("Three."))
    assert both == "One. Two, plain. Three."
    assert [words["text"] for words in words_of(both)] == ["One.", "%1", "Three."]
    assert words_of(join("a", "b")) is None


def test_many_sentences_may_stand_in_a_list():
    places = [say("line %1", number) for number in range(12)]
    listed = join(*places, by="; ")
    assert listed == "; ".join(places)
    (words,) = words_of(listed)
    assert (words["text"], len(words["values"])) == ("%1; %2; %3; %4; %5; %6; %7; %8; %9", 9)
    assert words["values"][8][0]["text"] == "%1; %2; %3; %4"


def test_an_error_keeps_its_words_on_its_way():
    error = JupyterDistError("rank_dead", say("Rank %1 %2.", 2, say("exited with code %1", 3)), "Plain hint.")
    body = json.loads(json.dumps(error.to_dict()))
    assert body["message"] == "Rank 2 exited with code 3."
    assert "hint_words" not in body
    assert JupyterDistError.from_dict(body).to_dict() == body


@pytest.mark.parametrize("damaged", [None, "x", [1], [{}], [{"text": 1, "values": []}], [{"text": "x"}]])
def test_damaged_words_leave_the_text(damaged):
    assert not isinstance(with_words("text", damaged), Sentence)
