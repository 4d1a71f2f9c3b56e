import { describe, expect, it } from "vitest";
import { vendorNames } from "../../../api/names.ts";
import { groupVersion, type KubeObject } from "../../../api/object.ts";
import { holdAnnotations } from "../../../api/protocol/node-hold.ts";
import type { SeenNode } from "../../observation.ts";
import { node, observed } from "../../testing/observed.ts";
import type { WavesInputs } from "../node-waves.ts";
import { leftHeld, planWaves } from "./waves.ts";

const apiVersion = groupVersion(vendorNames.groups.stored);
const kind = vendorNames.kinds.dataplaneConfiguration.kind;
const configuration = (name: string, spec: object, annotations = {}): KubeObject => ({
  apiVersion,
  kind,
  metadata: { name, annotations },
  spec,
});

const HEAD = node("head", { controlPlane: true });
const WORKERS = ["a", "b", "c", "d"].map((name) => node(name));

function waves(inputs: Partial<WavesInputs>, nodes: readonly SeenNode[] = [HEAD, ...WORKERS], own: KubeObject[] = []) {
  const service = { dataplaneConfiguration: configuration("default", { bpfEnabled: false }), nodeConfigurations: own };
  return planWaves(observed({ nodes, service }), "BPF", { size: { percent: 25 }, serving: [], ...inputs });
}

describe("the waves of a switch", () => {
  it.each<[string, Partial<WavesInputs>, string[][]]>([
    ["begin with a node that is not of the control plane", {}, [["a"], ["b", "c"], ["d", "head"]]],
    ["begin where a service's pod runs", { serving: ["c", "head"] }, [["c"], ["a", "b"], ["d", "head"]]],
    ["begin where they are told", { canary: "head", serving: ["c"] }, [["head"], ["a", "b"], ["c", "d"]]],
    ["have at least one node", { size: { percent: 1 } }, [["a"], ["b"], ["c"], ["d"], ["head"]]],
    ["have as many nodes as they are told", { size: { nodes: 3 } }, [["a"], ["b", "c", "d"], ["head"]]],
    ["are two where all follow the canary", { size: { percent: 100 } }, [["a"], ["b", "c", "d", "head"]]],
  ])("%s", (_title, inputs, expected) => expect(waves(inputs)).toEqual(expected));

  it("are none for one node, and leave Windows nodes out", () => {
    expect(waves({}, [HEAD])).toEqual([]);
    expect(waves({}, [HEAD, node("win", { operatingSystem: "windows" })])).toEqual([]);
  });

  it("leave out a node that somebody has put there already, and take one an older switch left held", () => {
    const there = configuration("node.a", { bpfEnabled: true });
    const left = configuration("node.b", { bpfEnabled: false }, holdAnnotations("configuration-made"));
    const other = configuration("node.c", { mtu: 1400 });
    expect(waves({}, undefined, [there, left, other])).toEqual([["b"], ["c"], ["d"], ["head"]]);
  });

  it("that an earlier switch did not end are ended: those still held, and no others", () => {
    const left = ["c", "head"].map((name) =>
      configuration(`node.${name}`, { bpfEnabled: false }, holdAnnotations("configuration-made")),
    );
    const service = {
      dataplaneConfiguration: configuration("default", { bpfEnabled: true }),
      nodeConfigurations: left,
    };
    const seen = observed({ nodes: [HEAD, ...WORKERS], service });
    expect(planWaves(seen, "BPF", { size: { nodes: 1 }, serving: [] })).toEqual([["c"], ["head"]]);
    expect(leftHeld(seen)).toEqual([["head", "c"]]);
  });

  it("are refused where somebody keeps a node back, or begin at a node that is not there", () => {
    const kept = configuration("node.d", { bpfEnabled: false });
    expect(() => waves({}, undefined, [kept])).toThrow(/configuration of their own.*DataplaneConfiguration node\.d/);
    expect(() => waves({ canary: "z" })).toThrow(/no Linux node z; the nodes are head, a, b, c, d/);
  });
});
