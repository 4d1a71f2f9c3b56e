import { defineErrors } from "../kit/errors.ts";

/** sysexits: a configuration error. */
const CONFIG = 78;

export const errors = defineErrors({
  FLOWS_NO_AUTHORITY: {
    means: "vendor-flow-logs was started without a key pair and the authority of the agents' certificates.",
    say: () => "there is no certificate, or no authority, to take flows from agents with",
    fix: () => "set TLS_CERT_FILE, TLS_KEY_FILE and CA_FILE to the files of its Secret",
    exitCode: CONFIG,
  },
  FLOWS_MEMORY_BAD: {
    means: "How much memory flows may take is not a number of mebibytes that can be.",
    example: ["HISTORY_MIB", "1G"],
    say: (name: string, text: string) => `${name} is "${text}", which is no number of mebibytes from 16 to 65536`,
    fix: (name: string) => `set ${name} of the container to a whole number, or omit it (default: 512)`,
    exitCode: CONFIG,
  },
  FLOWS_COUNT_BAD: {
    means: "A limit of what vendor-flow-logs keeps on disk is not a number that can be.",
    example: ["HISTORY_DAYS", "a week", 3650],
    say: (name: string, text: string, most: number) =>
      `${name} is "${text}", which is no whole number from 1 to ${most}`,
    fix: (name: string) => `set ${name} of the container to such a number, or omit it`,
    exitCode: CONFIG,
  },
  FLOWS_DISK_BAD: {
    means: "The directory in which flows are to be kept cannot be used.",
    example: ["/var/lib/vendor/flows", "EACCES: permission denied"],
    say: (directory: string, why: string) => `flows cannot be kept in ${directory}: ${why}`,
    fix: () =>
      "check the PersistentVolumeClaim that disk of FlowLogs names: the pod's group must be able to write to it",
    exitCode: CONFIG,
  },
  FLOWS_PORT_BAD: {
    means: "The port of a flow log component is not a number.",
    example: ["PORT", "http"],
    say: (name: string, text: string) => `${name} is "${text}", which is not a port`,
    fix: (name: string) => `set ${name} of the container to a number from 1 to 65535, or omit it`,
    exitCode: CONFIG,
  },
  FLOW_PAGE_NOT_BUILT: {
    means: "The files of the flow UI are not where this program is: it was built without them.",
    say: () => "the flow UI is not part of this build",
    fix: () => "run npm run build, or use the published image",
    exitCode: CONFIG,
  },
  FLOWS_EXPORT_ENDPOINT_BAD: {
    means: "The address of the collector that flows are exported to is not a URL.",
    example: ["collector:4318"],
    say: (text: string) => `EXPORT_OTLP_ENDPOINT is "${text}", which is not a URL of a collector`,
    fix: () => "write export.otlp.endpoint of FlowLogs as http://HOST:PORT or https://HOST:PORT",
    exitCode: CONFIG,
  },
  FLOWS_EXPORT_HEADERS_BAD: {
    means: "The headers for the collector, from the Secret that FlowLogs names, cannot be read.",
    example: [2],
    say: (position: number) => `header ${position} for the collector is not NAME=VALUE`,
    fix: () => "write the key of the Secret as NAME=VALUE,NAME=VALUE; encode commas and signs beyond ASCII as %2C",
    exitCode: CONFIG,
  },
});
