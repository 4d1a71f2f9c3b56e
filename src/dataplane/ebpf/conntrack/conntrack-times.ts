import type { DataplaneConfiguration } from "../../../api/resources/dataplane-configuration.ts";
import type { CONFIGURATION } from "../../../gen/bpf/layout.gen.ts";
import { durationMs } from "../../../kit/duration.ts";

type Timeouts = NonNullable<DataplaneConfiguration["spec"]["bpfConntrackTimeouts"]>;
type Variables = Partial<typeof CONFIGURATION>;

/** The variable of the programs, and what the kernel calls the same time of its own. */
const TIMES: Record<keyof Timeouts, readonly [variable: keyof typeof CONFIGURATION, kernel: string]> = {
  tcpSynSent: ["timeout_tcp_opening", "tcp_timeout_syn_sent"],
  tcpEstablished: ["timeout_tcp_established", "tcp_timeout_established"],
  tcpFinsSeen: ["timeout_tcp_closing", "tcp_timeout_time_wait"],
  udpTimeout: ["timeout_udp", "udp_timeout_stream"],
  icmpTimeout: ["timeout_icmp", "icmp_timeout"],
  genericTimeout: ["timeout_other", "generic_timeout"],
};

const NS_PER_MS = 1e6;

/** Times of the programs, by what is configured; `kernelSeconds` reads the kernel's own where `Auto` is. What is left out stays as it is. */
export function conntrackTimes(given: Timeouts = {}, kernelSeconds: (name: string) => string | undefined): Variables {
  const entries = Object.entries(given).flatMap(([field, text]) => {
    const [variable, kernel] = TIMES[field as keyof Timeouts] ?? [];
    const ms = text === "Auto" ? Number(kernelSeconds(`nf_conntrack_${kernel}`)) * 1_000 : durationMs(text);
    return variable && ms > 0 ? [[variable, Math.round(ms * NS_PER_MS)] as const] : [];
  });
  return Object.fromEntries(entries);
}
