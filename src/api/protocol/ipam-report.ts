/**
 * What vendor-kube-controllers reports of IPAM, in the annotations of the pod that holds the lease: it is gone with the pod.
 * The operator reads it, and shows it in the status `ippools`.
 */
const IPAM_ANNOTATION = "vendor.io/ipam";

export interface IpamReport {
  /** Addresses that more than one running pod has, at most `MOST_REPORTED` of them. */
  duplicates: readonly DuplicateAddress[];
  /** Addresses without a pod, released after the grace period. */
  leakedAddresses: number;
  /** Blocks of nodes that are gone, released after the grace period. */
  blocksWithoutNode: number;
  /** Services of type LoadBalancer without an address, at most `MOST_REPORTED` of them. */
  servicesWithoutAddress: readonly ServiceWithoutAddress[];
}

export interface ServiceWithoutAddress {
  /** `NAMESPACE/NAME`. */
  service: string;
  why: string;
}

export interface DuplicateAddress {
  address: string;
  /** `NAMESPACE/NAME`. */
  pods: readonly string[];
}

/** An annotation has a limit, and the first few are enough to act on. */
export const MOST_REPORTED = 20;

type Annotations = Readonly<Record<string, string>> | undefined;

/** As annotations for a merge patch: null where there is nothing to report. */
export function ipamReportAnnotations(report: IpamReport): Record<string, string | null> {
  const { duplicates, leakedAddresses, blocksWithoutNode, servicesWithoutAddress } = report;
  const isEmpty = duplicates.length + leakedAddresses + blocksWithoutNode + servicesWithoutAddress.length === 0;
  return { [IPAM_ANNOTATION]: isEmpty ? null : JSON.stringify(report) };
}

/** Undefined where nothing is reported, or in words of another release. */
export function readIpamReport(annotations: Annotations): IpamReport | undefined {
  const text = annotations?.[IPAM_ANNOTATION];
  if (text === undefined) return undefined;
  try {
    const read = JSON.parse(text) as Partial<IpamReport> | null;
    const duplicates = Array.isArray(read?.duplicates) ? read.duplicates.filter(isDuplicate) : [];
    const lacking = read?.servicesWithoutAddress;
    return {
      duplicates,
      leakedAddresses: count(read?.leakedAddresses),
      blocksWithoutNode: count(read?.blocksWithoutNode),
      servicesWithoutAddress: Array.isArray(lacking) ? lacking.filter(isWithoutAddress) : [],
    };
  } catch {
    // Written by hand, or cut: the next report replaces it.
    return undefined;
  }
}

function isDuplicate(value: unknown): value is DuplicateAddress {
  const { address, pods } = (value ?? {}) as Partial<DuplicateAddress>;
  return typeof address === "string" && Array.isArray(pods) && pods.every((pod) => typeof pod === "string");
}

function isWithoutAddress(value: unknown): value is ServiceWithoutAddress {
  const { service, why } = (value ?? {}) as Partial<ServiceWithoutAddress>;
  return typeof service === "string" && typeof why === "string";
}

function count(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}
