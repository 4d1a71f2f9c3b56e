import { describe, expect, it } from "vitest";
import type { ApplyReport, Dataplane } from "../dataplane/contract.ts";
import { silentLog } from "../kit/log.ts";
import type { ModelDelta, Settings } from "../policy/model.ts";
import { ModelCopy } from "../policy/model-copy.ts";
import { errors } from "./errors.ts";
import { emptyDelta } from "./model-delta.ts";
import { type PlaneKind, planeSwitch } from "./plane-switch.ts";

/** Data planes in memory: whether each filters, and what it was told. */
class Planes {
  readonly filtering = new Set<PlaneKind>();
  readonly deltas: Record<PlaneKind, ModelDelta[]> = { nft: [], ebpf: [] };
  failing: PlaneKind | undefined;
  /** The fewest that filtered at once since the first did. */
  fewest = Number.POSITIVE_INFINITY;

  open(kind: PlaneKind): Dataplane {
    const look = () => {
      this.fewest = Math.min(this.fewest, this.filtering.size);
    };
    return {
      kind,
      apply: async (delta): Promise<ApplyReport> => {
        this.deltas[kind].push(delta);
        if (this.failing === kind) {
          return { objects: [{ kind: "endpoint", id: "shop/web", failed: errors.AGENT_NOT_READY("no") }] };
        }
        this.filtering.add(kind);
        return { objects: [] };
      },
      resync: async () => {},
      sweep: async () => ({ removed: [] }),
      show: async () => ({ columns: [kind], rows: [] }),
      close: async () => {},
      remove: async () => {
        this.filtering.delete(kind);
        look();
      },
    };
  }
}

function start(refusal?: string) {
  const planes = new Planes();
  const open = { nft: async () => planes.open("nft"), ebpf: async () => planes.open("ebpf") };
  const both = planeSwitch({ open, refusal, log: silentLog });
  const want = (dataplane: Settings["dataplane"], inSync = true) =>
    both.apply({ ...emptyDelta(inSync), settings: { ...new ModelCopy().settings, dataplane } });
  return { planes, both, want };
}

describe("two data planes", () => {
  it("touch nothing before everything is known, so that what an earlier life left goes on", async () => {
    const { planes, both, want } = start();
    await want("ebpf", false);
    expect([...planes.filtering]).toEqual([]);
    expect(both.acting()).toBeUndefined();
    await want("ebpf");
    expect(both.acting()).toBe("ebpf");
  });

  it("the new one filters before the old one stops", async () => {
    const { planes, both, want } = start();
    await want("nft");
    await want("ebpf");
    expect(both.acting()).toBe("ebpf");
    expect([...planes.filtering]).toEqual(["ebpf"]);
    await want("nft");
    expect([...planes.filtering]).toEqual(["nft"]);
    expect(planes.fewest).toBe(1);
    // It was told everything, not only what changed.
    expect(planes.deltas.nft.at(-1)?.settings?.dataplane).toBe("nft");
  });

  it("where the new one cannot be programmed the old one goes on, and it is tried again", async () => {
    const { planes, both, want } = start();
    await want("nft");
    planes.failing = "ebpf";
    await want("ebpf");
    expect(both.acting()).toBe("nft");
    expect([...planes.filtering]).toEqual(["nft"]);
    planes.failing = undefined;
    await both.apply(emptyDelta(true));
    expect(both.acting()).toBe("ebpf");
  });

  it("a node whose kernel refuses the programs stays with the standard one", async () => {
    const { planes, both, want } = start("the verifier said no");
    await want("ebpf");
    expect(both.acting()).toBe("nft");
    expect(planes.deltas.ebpf).toEqual([]);
  });

  it("what a change that was cut short left of the other one is swept", async () => {
    const { planes, both, want } = start();
    planes.filtering.add("nft");
    await want("ebpf");
    expect([...planes.filtering]).toEqual(["nft", "ebpf"]);
    await both.sweep();
    expect([...planes.filtering]).toEqual(["ebpf"]);
  });
});
