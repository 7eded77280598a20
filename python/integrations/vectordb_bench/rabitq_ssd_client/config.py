"""What VectorDBBench asks about a database: where it is, and what of it is measured."""

from pydantic import BaseModel
from vectordb_bench.backend.clients.api import DBCaseConfig, DBConfig, MetricType

METRICS = {
    MetricType.L2: "l2",
    MetricType.IP: "ip",
    MetricType.DP: "ip",
    MetricType.COSINE: "cosine",
}


class RabitqSsdConfig(DBConfig):
    """The folder that indexes are kept in."""

    path: str

    def to_dict(self) -> dict:
        return {"path": self.path}


class RabitqSsdIndexConfig(BaseModel, DBCaseConfig):
    """Options of `rabitq_ssd.build` and of `Index.search`."""

    metric_type: MetricType | None = None
    nlist: int | None = None
    record: str = "split"
    bits: int | None = None
    memory: str | None = None
    nprobe: int = 64
    alpha: float = 0.4

    def index_param(self) -> dict:
        if self.metric_type not in METRICS:
            msg = f"rabitq-ssd has no metric {self.metric_type}"
            raise ValueError(msg)
        options = {"nlist": self.nlist, "bits": self.bits, "memory": self.memory}
        given = {name: value for name, value in options.items() if value is not None}
        return {"metric": METRICS[self.metric_type], "record": self.record, **given}

    def search_param(self) -> dict:
        return {"nprobe": self.nprobe, "alpha": self.alpha}
