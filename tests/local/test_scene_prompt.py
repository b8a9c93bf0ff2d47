"""What the scene model understands of a prompt."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trunkline.local.scene.prompt import MOST, Scene, Subject, describe, parse

CAT, DOG, GIRL = "🐈", "🐕", "👧"


@pytest.mark.parametrize(
    ("prompt", "scene"),
    [
        ("a cute cat", Scene((Subject(CAT, "cat", cute=True),))),
        ("一只可爱的猫", Scene((Subject(CAT, "猫", cute=True),))),
        ("一条狗", Scene((Subject(DOG, "狗"),))),
        ("a pink-haired girl", Scene((Subject(GIRL, "girl", hair="pink"),))),
        ("A girl with pink hair", Scene((Subject(GIRL, "girl", hair="pink"),))),
        ("粉色头发的女孩", Scene((Subject(GIRL, "女孩", hair="pink"),))),
        ("女孩，粉色头发", Scene((Subject(GIRL, "女孩", hair="pink"),))),
        (
            "a dog running on the beach at sunset",
            Scene((Subject(DOG, "dog", action="run"),), place="beach", time="sunset"),
        ),
        ("日落时在海滩上奔跑的狗", Scene((Subject(DOG, "狗", action="run"),), place="beach", time="sunset")),
        ("red bicycle in the rain", Scene((Subject("🚲", "bicycle", colour="red"),), place="city", weather="rain")),
        ("金发男孩", Scene((Subject("👦", "男孩", hair="golden"),))),
        ("雨中的红色自行车", Scene((Subject("🚲", "自行车", colour="red"),), place="city", weather="rain")),
        ("three red balloons", Scene((Subject("🎈", "balloons", count=3, colour="red"),))),
        ("三只红气球", Scene((Subject("🎈", "气球", count=3, colour="red"),))),
        ("2 white rabbits in a snowy forest at night",
         Scene((Subject("🐇", "rabbits", count=2, colour="white"),), place="forest", time="night", weather="snow")),
        ("fog over the mountains at dawn", Scene(place="mountain", time="dawn", weather="fog")),
        ("a boy riding a blue bicycle",
         Scene((Subject("🚴\u200d♂️", "boy", colour="blue", action="ride"),), place="city")),
        ("a woman in a green dress dancing", Scene((Subject("💃", "woman", colour="green", action="dance"),))),
        ("🐱 in 🌧", Scene((Subject("🐱", "🐱"),), weather="rain")),
        ("a fish and an octopus", Scene((Subject("🐟", "fish"), Subject("🐙", "octopus")), place="underwater")),
        ("a rocket", Scene((Subject("🚀", "rocket"),), place="space")),
    ],
)  # fmt: skip
def test_a_prompt_becomes_a_scene(prompt: str, scene: Scene) -> None:
    assert parse(prompt) == scene


def test_what_goes_with_whom() -> None:
    girl, dog = parse("a boy's sister, a girl with pink hair, and a black dog").subjects[-2:]
    assert (girl.hair, girl.colour) == ("pink", "")
    assert (dog.hair, dog.colour) == ("", "black")


def test_unknown_words_are_kept_together_and_told() -> None:
    scene = parse("the quantum flux capacitor and a zebra")
    assert scene.unknown == ("quantum flux capacitor",)
    assert [one.symbol for one in scene.subjects] == ["🦓"]
    assert "quantum flux capacitor" in describe(scene)
    assert parse("公平").unknown == ("公平",)


def test_more_than_can_be_drawn_is_told() -> None:
    assert f"{MOST} (of 500) sheep" in describe(parse("500 sheep"))


def test_a_list_without_end_stays_bounded() -> None:
    assert len(parse("cat dog horse " * 1000).subjects) < 20


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=300))
def test_any_text_can_be_read(prompt: str) -> None:
    describe(parse(prompt))
