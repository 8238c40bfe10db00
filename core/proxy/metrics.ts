/** Metrics about applied writes. A base id is not a label. */
import { Counter, Gauge, type Registry } from "prom-client";

export interface WriteMetrics {
  /** Images that lost to one applied after their read version: their records are read again. */
  lost(images: number): void;
  /** Records that the source has written and a replica may not show yet. */
  repairRecorded(records: number): void;
  repairDone(records: number): void;
  /** Pending repairs: of all processes, and those that only this process knows. */
  repairsPending(recorded: number, inMemory: number): void;
}

export function writeMetrics(registry: Registry): WriteMetrics {
  const registers = [registry];
  const lost = new Counter({
    name: "basetide_proxy_lost_row_images_total",
    help: "Row images of proxied writes that were superseded by a newer image, so that their records were read again",
    registers,
  });
  const recorded = new Counter({
    name: "basetide_proxy_repairs_recorded_total",
    help: "Records that Airtable has written and that a replica did not show before the response",
    registers,
  });
  const done = new Counter({
    name: "basetide_proxy_repairs_done_total",
    help: "Repaired records: read again and applied",
    registers,
  });
  const dirty = new Gauge({
    name: "basetide_repairs_pending",
    help: "Pending repairs, by where they are stored: the control plane (of all processes), or only the memory of this process",
    labelNames: ["where"],
    registers,
  });
  return {
    lost: (images) => lost.inc(images),
    repairRecorded: (records) => recorded.inc(records),
    repairDone: (records) => done.inc(records),
    repairsPending(inControlPlane, inMemory) {
      dirty.set({ where: "control_plane" }, inControlPlane);
      dirty.set({ where: "memory" }, inMemory);
    },
  };
}
