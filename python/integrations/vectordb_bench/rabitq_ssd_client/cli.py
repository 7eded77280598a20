"""The command `vectordbbench rabitqssd`."""

from typing import Annotated, Unpack

import click
from vectordb_bench.backend.clients import DB
from vectordb_bench.cli.cli import (
    CommonTypedDict,
    cli,
    click_parameter_decorators_from_typed_dict,
    run,
)

from .config import RabitqSsdConfig, RabitqSsdIndexConfig


class RabitqSsdTypedDict(CommonTypedDict):
    path: Annotated[str, click.option("--path", required=True, help="Folder of the indexes")]
    record: Annotated[
        str, click.option("--record", default="split", help="split, f32, u8, sq8, sq4")
    ]
    memory: Annotated[str, click.option("--memory", help="Most RAM of an index, as 2GiB")]
    nlist: Annotated[int, click.option("--nlist", type=int, help="Lists; n / 1024 by default")]
    nprobe: Annotated[int, click.option("--nprobe", type=int, default=64, help="Lists to visit")]
    alpha: Annotated[float, click.option("--alpha", type=float, default=0.4, help="Of the drain")]


@cli.command()
@click_parameter_decorators_from_typed_dict(RabitqSsdTypedDict)
def RabitqSsd(**parameters: Unpack[RabitqSsdTypedDict]):
    names = ("record", "memory", "nlist", "nprobe", "alpha")
    run(
        db=DB.RabitqSsd,
        db_config=RabitqSsdConfig(db_label=parameters["db_label"], path=parameters["path"]),
        db_case_config=RabitqSsdIndexConfig(**{name: parameters[name] for name in names}),
        **parameters,
    )
