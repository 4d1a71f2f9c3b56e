import type { Noun } from "../names.ts";

/** A field that has one value in this release, because files written elsewhere have it; another value is refused when it is written. */
export interface FixedValue {
  value: string | number | boolean;
  because: string;
}

const ALWAYS_TRACKED: Readonly<Record<string, FixedValue>> = {
  "spec.doNotTrack": {
    ...{ value: false, because: "Connections are always tracked; preDNAT with applyOnForward decides as early." },
  },
};

/** By kind and path; those of DataplaneConfiguration are in its own table. */
export const FIXED_VALUES: Partial<Record<Noun, Readonly<Record<string, FixedValue>>>> = {
  installation: {
    "spec.vendorNetwork.nodeAddressAutodetectionV4.firstFound": {
      ...{
        value: true,
        because: "To find the address in another way, name that way; with none it is the first found.",
      },
    },
    "spec.vendorNetwork.nodeAddressAutodetectionV6.firstFound": {
      ...{
        value: true,
        because: "To find the address in another way, name that way; without an IPv6 pool none is used.",
      },
    },
  },
  kubeControllersConfiguration: {
    "spec.healthChecks": {
      ...{ value: "Enabled", because: "A pod that does not answer its probes would be restarted for ever." },
    },
    "spec.debugProfilePort": { value: 0, because: "The controllers serve no profiles." },
    "spec.controllers.node.syncLabels": {
      ...{ value: "Enabled", because: "The labels of nodes are always those that Kubernetes has." },
    },
  },
  globalNetworkPolicy: ALWAYS_TRACKED,
  stagedGlobalNetworkPolicy: ALWAYS_TRACKED,
};
