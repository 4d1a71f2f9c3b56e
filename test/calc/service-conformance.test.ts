import { describe, expect, it } from "vitest";
import { type ServiceEndpoint, selectEndpoints } from "../../src/calc/services/endpoint-selection.ts";
import { NO_CONFORMANCE_DATA } from "../support/conformance.ts";
import { type ConnectionExpectation, OUT_OF_SCOPE, type OutOfScope, serviceCases } from "../support/service-cases.ts";
import { serviceVerdict } from "../support/service-verdict.ts";

const cases = serviceCases();
/** Out of scope for data planes only: what the proxy's settings change, the reference is told. */
const JUDGED_ALL_THE_SAME: (OutOfScope | undefined)[] = [undefined, "podsUnknown", "nodePortAddresses"];

describe.skipIf(!cases)(`public service cases${cases ? "" : ` (${NO_CONFORMANCE_DATA})`}`, () => {
  const { states, selections } = cases ?? { states: [], selections: [] };
  const flows = states.flatMap((state) => state.flows.map((flow) => ({ state, flow })));

  it("endpoints are chosen as Kubernetes chooses them, in every public case", () => {
    const wrong = selections.flatMap((given) => {
      const { cluster, local, any } = selectEndpoints(given.endpoints.map(endpointOf), policiesOf(given.service), {
        node: given.nodeName,
        zone: given.nodeLabels["topology.kubernetes.io/zone"] ?? "",
      });
      const { clusterEndpoints, localEndpoints, hasAnyEndpoints } = given.expect;
      const found = [namesOf(cluster), namesOf(local), any];
      const wanted = [clusterEndpoints, localEndpoints, hasAnyEndpoints];
      return JSON.stringify(found) === JSON.stringify(wanted) ? [] : [{ name: given.name, found, wanted }];

      function endpointOf(listed: (typeof given.endpoints)[number]): ServiceEndpoint {
        const [address = "", port] = listed.endpoint.split(":");
        const nodeHints = given.preferSameTrafficDistribution ? listed.nodeHints : [];
        return { ...listed, address, port: Number(port), node: null, nodeHints };
      }
    });
    expect(wrong).toEqual([]);
    expect(selections.length).toBe(31);
  });

  it("the first packet of every public flow in scope is judged as Kubernetes' proxy judges it", () => {
    const judged = flows.filter(({ flow }) => JUDGED_ALL_THE_SAME.includes(flow.outOfScope));
    const wrong = judged.flatMap(({ state, flow }) => {
      const verdict = serviceVerdict(state.services.values(), state.surroundings, flow);
      return JSON.stringify(verdict) === JSON.stringify(flow.expect) ? [] : [{ state: state.id, flow, verdict }];
    });
    expect(wrong).toEqual([]);
    expect([states.length, flows.length, judged.length]).toEqual([79, 446, 315]);
  });

  it("where the proxy hides clients of cluster addresses, the same backends answer", () => {
    const hiding = flows.filter(({ flow }) => flow.outOfScope === "masqueradeAll");
    const wrong = hiding.flatMap(({ state, flow }) => {
      const verdict = serviceVerdict(state.services.values(), state.surroundings, flow);
      const answers = ({ masquerade: _, ...rest }: ConnectionExpectation & { masquerade?: boolean }) =>
        JSON.stringify(rest);
      return answers(verdict) === answers(flow.expect) ? [] : [{ state: state.id, flow, verdict }];
    });
    expect(wrong).toEqual([]);
    expect(hiding.length).toBe(108);
  });

  it("names what is out of scope, and how much it is", () => {
    const flowsOf = (reason: OutOfScope) => flows.filter(({ flow }) => flow.outOfScope === reason).length;
    const reasons = Object.keys(OUT_OF_SCOPE) as OutOfScope[];
    expect(Object.fromEntries(reasons.map((reason) => [OUT_OF_SCOPE[reason], flowsOf(reason)]))).toEqual({
      "SCTP services are refused with a problem": 2,
      "there is no setting that hides clients of cluster addresses": 108,
      "pods are always known here: the data plane connected them": 54,
      "sockets that ask a loopback address are translated when they connect; no packet with one is": 19,
      "node ports are on every address of the node; the proxy's setting for some of them is not offered": 4,
      "a port the service does not have is refused, as the nftables proxy does; the iptables proxy lets it pass": 2,
    });
  });
});

function policiesOf(service: {
  internalTrafficPolicy: string;
  externalTrafficPolicy: string;
  externallyAccessible: boolean;
}) {
  return {
    internalLocal: service.internalTrafficPolicy === "Local",
    externalLocal: service.externalTrafficPolicy === "Local",
    external: service.externallyAccessible,
  };
}

function namesOf(endpoints: readonly ServiceEndpoint[]): string[] {
  return endpoints.map(({ address, port }) => `${address}:${port}`).sort();
}
