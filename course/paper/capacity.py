"""Table 1: how many tokens fit, from the models' own sizes."""

from __future__ import annotations

from course.paper.record import Measured, Quantity, Record, Setup
from engine.baselines.fragmentation import waste
from engine.i18n import N_
from engine.model.kv_cache_size import BYTES_PER_GB, WELL_KNOWN, ModelFacts

OPT_13B = next(model for model in WELL_KNOWN if model.name == "OPT-13B")
OPT_66B = ModelFacts("OPT-66B", 64, 72, 72, 128, 2048, 65_719_701_504, "Zhang et al. 2022, Table 1")
OPT_175B = ModelFacts("OPT-175B", 96, 96, 96, 128, 2048, 174_604_468_224, "Zhang et al. 2022, Table 1")
KV_GB = {"13B": (OPT_13B, 12), "66B": (OPT_66B, 21), "175B": (OPT_175B, 264)}
"""Memory for the KV cache as Table 1 prints it, in GB of 1024^3 bytes."""


def num_slots(model: str) -> int:
    """Tokens whose keys and values fit, for `13B`, `66B` or `175B`."""
    facts, gigabytes = KV_GB[model]
    return gigabytes * BYTES_PER_GB // facts.kv_bytes_per_token()


def measure_table_1(_setup: Setup) -> Measured:
    """Slots in thousands; and what Orca (Max) can do with those of 13B."""
    from course.paper.serving import ContiguousMemory
    from course.paper.workloads import MAX_MODEL_LEN, Request
    from engine.baselines.reservations import Max
    from engine.trace.state import CacheState

    memory, state = ContiguousMemory(num_slots("13B"), Max(MAX_MODEL_LEN)), CacheState()
    for number in range(num_slots("13B") // MAX_MODEL_LEN + 1):  # one more than can fit
        memory.add(Request(number, 0.0, 1, MAX_MODEL_LEN - 1))
    memory.scheduler.step()
    for event in memory.trace:
        state.apply(event)
    values = {model: [num_slots(model) / 1000] for model in KV_GB}
    left_over = waste(state).percent("external_fragmentation")
    return Measured(values | {"requests": [float(memory.num_running)], "left_over": [left_over]})


RECORDS = (
    Record(
        key="table1",
        place=N_("Table 1, section 6.1"),
        title=N_("Tokens that fit"),
        quantities=(
            Quantity("13B", N_("OPT-13B, 12 GB: slots, in thousands"), "15.7", "T", 15.7, 15.7, digits=1),
            Quantity("66B", N_("OPT-66B, 21 GB: slots, in thousands"), "9.7", "T", 9.7, 9.7, digits=1),
            Quantity("175B", N_("OPT-175B, 264 GB: slots, in thousands"), "60.1", "T", 60.1, 60.1, digits=1),
            Quantity("requests", N_("Orca (Max) on OPT-13B: requests at once"), "7.00", "L", 7.0, 7.0),
            Quantity(
                "left_over", N_("Orca (Max): memory too short for one more, percent"), "8.9", "L", 8.9, 8.9, digits=1
            ),
        ),
        setup=(
            N_("Slots follow from layers, heads and float16; nothing runs but the allocator."),
            N_("The memory sizes are the paper's, rounded to whole gigabytes there."),
            N_("Orca (Max)'s row in Figs. 2 and 13 follows from this table alone."),
        ),
        measure=measure_table_1,
        why=N_(
            "OPT-66B: 21 GB hold 9,557 tokens. The printed 9.7 thousand need about 21.3 GB, so the "
            "printed memory is probably rounded down."
        ),
    ),
)
