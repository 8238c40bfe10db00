/** Metrics about applied writes. A base id is not a label. */
import { Counter, Gauge, type Registry } from "prom-client";

export type WriteMetrics = ReturnType<typeof writeMetrics>;

export function writeMetrics(registry: Registry) {
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
    /** Images that lost to one applied after their read version: their records are read again. */
    lost: (images: number) => lost.inc(images),
    /** Records that the source has written and a replica may not show yet. */
    repairRecorded: (records: number) => recorded.inc(records),
    repairDone: (records: number) => done.inc(records),
    /** Pending repairs: of all processes, and those that only this process knows. */
    repairsPending(inControlPlane: number, inMemory: number) {
      dirty.set({ where: "control_plane" }, inControlPlane);
      dirty.set({ where: "memory" }, inMemory);
    },
  };
}
