import { typeOf } from "../../src/agent/stored-kinds.ts";
import { vendorNames } from "../../src/api/names.ts";
import type { ResourceKind } from "../../src/api/object.ts";
import { globalNetworkPolicy } from "../../src/api/resources/network-policy.ts";
import { globalNetworkSet } from "../../src/api/resources/network-set.ts";
import { placesOf } from "../../src/api/resources/resource.ts";
import { tier } from "../../src/api/resources/tier.ts";
import type { Client } from "../../src/cluster/client.ts";
import { isAlreadyExists } from "../../src/cluster/failures.ts";
import { NETWORK_POLICIES } from "../../src/cluster/kinds.ts";

const TIERS = placesOf(tier, vendorNames).stored;
const POLICIES = placesOf(globalNetworkPolicy, vendorNames).stored;
const SETS = placesOf(globalNetworkSet, vendorNames).stored;

/** Opened and closed by turns, so that it can be seen which policies are in effect. */
export const CANARY_PORT = 8081;

interface Written {
  kind: ResourceKind;
  name: string;
  namespace?: string;
  labels?: Record<string, string>;
  spec: object;
}

/**
 * Policies that change all the time, and never their mind: pods with `access: none` hear nobody but at the canary's port, pods with
 * `role: server` hear the client. That is so at every moment, whichever of the writes of a swap an agent has seen already.
 */
export class PolicySwaps {
  readonly #client: Client;
  readonly #clientAddress: string;
  count = 0;

  constructor(client: Client, clientAddress: string) {
    this.#client = client;
    this.#clientAddress = clientAddress;
  }

  get canaryIsOpen(): boolean {
    return this.count % 2 === 1;
  }

  async next(): Promise<void> {
    this.count++;
    for (const object of this.#objects()) await write(this.#client, object);
  }

  #objects(): Written[] {
    const turn = this.count;
    const closed = "access == 'none'";
    return [
      { kind: TIERS, name: "story-a", spec: { order: turn % 4 < 2 ? 100 : 300 } },
      { kind: TIERS, name: "story-b", spec: { order: 200 } },
      { kind: SETS, name: "friends", labels: { friend: "yes" }, spec: { nets: this.#friends(turn) } },
      policy("story-a", "guard", { selector: closed, order: turn % 5, ingress: [...canary(turn), ...guard(turn)] }),
      policy("story-b", "guard", { selector: closed, order: 1, ingress: turn % 3 === 2 ? [PASS] : DENY_KNOCKS }),
      policy("story-b", "door", {
        selector: "role == 'server'",
        order: turn % 7,
        ingress: [
          { action: "Allow", source: { selector: "friend == 'yes'" } },
          ...(turn % 2 ? [{ action: "Deny" }] : []),
        ],
      }),
      {
        kind: NETWORK_POLICIES,
        name: "closed",
        namespace: "default",
        spec: { podSelector: { matchLabels: { access: "none" } }, policyTypes: ["Ingress"], ingress: strangers(turn) },
      },
    ];
  }

  /** The client is always among them: alone, in a crowd, or in a prefix that has it. */
  #friends(turn: number): string[] {
    const crowd = Array.from({ length: 200 }, (_, at) => `192.0.2.${(at + turn) % 256}/32`);
    return [[`${this.#clientAddress}/32`], [`${this.#clientAddress}/32`, ...crowd], ["10.88.0.0/24"]][
      turn % 3
    ] as string[];
  }
}

const PASS = { action: "Pass" };
const DENY_KNOCKS = [
  { action: "Deny", protocol: "TCP", destination: { ports: [8080] } },
  { action: "Deny", protocol: "UDP" },
  PASS,
];

function canary(turn: number): object[] {
  return turn % 2 ? [{ action: "Allow", protocol: "TCP", destination: { ports: [CANARY_PORT] } }] : [];
}

function guard(turn: number): object[] {
  return [[{ action: "Deny" }], [{ action: "Deny", source: { selector: "role == 'client'" } }, PASS], [PASS]][
    turn % 3
  ] as object[];
}

/** Whom the last word lets in: nobody, or others than the client, or the client at a port nobody knocks at. */
function strangers(turn: number): object[] {
  const from = [
    [],
    [{ from: [{ podSelector: { matchLabels: { role: "nobody" } } }] }],
    [{ from: [{ ipBlock: { cidr: "192.0.2.0/24" } }] }],
    [{ from: [{ podSelector: {} }], ports: [{ port: 9999, protocol: "TCP" }] }],
  ];
  return from[turn % from.length] as object[];
}

function policy(inTier: string, name: string, spec: object): Written {
  return { kind: POLICIES, name: `${inTier}.${name}`, spec: { tier: inTier, types: ["Ingress"], ...spec } };
}

async function write(client: Client, { kind, name, namespace, labels = {}, spec }: Written): Promise<void> {
  const metadata = { name, ...(namespace && { namespace }), labels };
  try {
    await client.create(kind, { ...typeOf(kind), metadata, spec });
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    await client.patch(kind, metadata, { type: "merge", patch: { spec } });
  }
}
