import { UPGRADE_PROBLEMS } from "../tables/version-gates.ts";
import { BGP_PROBLEMS } from "./bgp.ts";
import { DATAPLANE_PROBLEMS } from "./dataplane-configuration.ts";
import { EBPF_PROBLEMS } from "./ebpf.ts";
import { ENDPOINT_PROBLEMS } from "./endpoint-map.ts";
import { FLOW_PROBLEMS } from "./flow-resources.ts";
import { HOST_ENDPOINT_PROBLEMS } from "./host-endpoint.ts";
import { INSTALLATION_PROBLEMS } from "./installation.ts";
import { CONTROLLERS_PROBLEMS } from "./kube-controllers-configuration.ts";
import { POLICY_PROBLEMS } from "./policy.ts";
import { POOL_PROBLEMS } from "./pools.ts";
import type { Explanation } from "./problem.ts";
import { RULE_PROBLEMS } from "./rule.ts";
import { STAGED_PROBLEMS } from "./staged-policy.ts";
import { STRUCTURE_PROBLEMS } from "./structure.ts";
import { TIER_PROBLEMS } from "./tier.ts";
import { VALUE_PROBLEMS } from "./values.ts";
import { WARNING_PROBLEMS } from "./write-warnings.ts";

/** Every code validation can answer with, for `vendorctl explain CODE`: it needs no cluster. */
export const EXPLANATIONS: Readonly<Record<string, Explanation>> = {
  ...STRUCTURE_PROBLEMS,
  ...VALUE_PROBLEMS,
  ...ENDPOINT_PROBLEMS,
  ...INSTALLATION_PROBLEMS,
  ...POOL_PROBLEMS,
  ...EBPF_PROBLEMS,
  ...DATAPLANE_PROBLEMS,
  ...CONTROLLERS_PROBLEMS,
  ...HOST_ENDPOINT_PROBLEMS,
  ...POLICY_PROBLEMS,
  ...STAGED_PROBLEMS,
  ...RULE_PROBLEMS,
  ...TIER_PROBLEMS,
  ...BGP_PROBLEMS,
  ...FLOW_PROBLEMS,
  ...UPGRADE_PROBLEMS,
  ...WARNING_PROBLEMS,
};
