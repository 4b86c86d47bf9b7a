from torchtriage.answer.templates import MAX_VALUE_LENGTH, filled, short, slots, with_open_slots


def test_a_sentence_is_filled() -> None:
    assert filled("{path} has {saved} outputs.", {"path": "r50.pth", "saved": "1000"}) == "r50.pth has 1000 outputs."


def test_an_open_slot_withholds_the_sentence() -> None:
    assert filled("{path} has {saved} outputs.", {"path": "r50.pth"}) is None


def test_an_optional_part_goes_with_its_slot() -> None:
    template = "It failed[[ at step {step}]][[ of {total}]]."
    assert filled(template, {"step": "12", "total": "90"}) == "It failed at step 12 of 90."
    assert filled(template, {"step": "12"}) == "It failed at step 12."
    assert filled(template, {}) == "It failed."


def test_a_value_takes_one_line_of_bounded_length() -> None:
    sentence = filled("{message}", {"message": "a\n  b " + "x" * 500})
    assert sentence is not None
    assert sentence.startswith("a b xxx")
    assert len(sentence) == MAX_VALUE_LENGTH


def test_braces_of_code_are_not_slots() -> None:
    assert slots("{k: v for k, v in sd.items()} {module}") == {"module"}


def test_a_value_that_ends_a_sentence_brings_no_second_stop() -> None:
    assert filled("It failed: {message}.", {"message": "Device lost."}) == "It failed: Device lost."
    assert filled("It failed: {message}.", {"message": "loading..."}) == "It failed: loading..."


def test_a_sentence_for_any_log_is_whole_where_all_its_slots_may_be_left_out() -> None:
    assert (
        with_open_slots("It lacks a key[[ ({key})]], so nothing is read.") == "It lacks a key (…), so nothing is read."
    )
    assert with_open_slots("{path} lacks a key[[ ({key})]].") == "… lacks a key."
    assert with_open_slots("It lacks a key.") == "It lacks a key."


def test_what_may_be_left_out_goes_where_one_of_its_slots_is_not_known() -> None:
    template = "Shard {shard} is short[[; step {step} of {steps} read it]]."
    assert filled(template, {"shard": "3", "step": "7"}) == "Shard 3 is short."
    assert filled(template, {"shard": "3", "step": "7", "steps": "90"}) == "Shard 3 is short; step 7 of 90 read it."


def test_a_value_is_not_cut_after_an_abbreviation() -> None:
    first = "Graph break due to an unsupported builtin of a third-party extension."
    assert filled("{message}", {"message": f"{first} It is one (e.g. of pybind). " + "x" * 200}) == (
        f"{first} It is one (e.g. of pybind)."
    )
    sentence = filled(
        "{message}", {"message": "Python cannot trace this builtin, which is part of a module (e.g. " + "x" * 200}
    )
    assert sentence is not None
    assert len(sentence) == MAX_VALUE_LENGTH


def test_a_long_value_is_cut_between_words() -> None:
    assert short("word " * 60) == ("word " * 31).strip() + "..."
    assert short("x" * 300) == "x" * (MAX_VALUE_LENGTH - 3) + "..."
    assert short("One whole sentence stands at the beginning of this long text here. " + "word " * 60).endswith("here.")


def test_a_part_that_is_left_out_leaves_the_space_between_chinese_and_latin() -> None:
    assert filled("rank {rank}[[（主机 {host}）]]没有进入", {"rank": "3"}) == "rank 3 没有进入"
    assert filled("在[[第 {step} 步，]]rank {rank}", {"rank": "3"}) == "在 rank 3"
    assert filled("{size}[[（{limit}）]]。", {"size": "3"}) == "3。"
