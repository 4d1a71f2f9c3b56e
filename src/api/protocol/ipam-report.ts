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
  const isEmpty = report.duplicates.length + report.leakedAddresses + report.blocksWithoutNode === 0;
  return { [IPAM_ANNOTATION]: isEmpty ? null : JSON.stringify(report) };
}

/** Undefined where nothing is reported, or in words of another release. */
export function readIpamReport(annotations: Annotations): IpamReport | undefined {
  const text = annotations?.[IPAM_ANNOTATION];
  if (text === undefined) return undefined;
  try {
    const read = JSON.parse(text) as Partial<IpamReport> | null;
    const duplicates = Array.isArray(read?.duplicates) ? read.duplicates.filter(isDuplicate) : [];
    return {
      duplicates,
      leakedAddresses: count(read?.leakedAddresses),
      blocksWithoutNode: count(read?.blocksWithoutNode),
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

function count(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}
