import { isIP } from "node:net";

const DATE_TIME = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/;
const DURATION = /^[+-]?(0|((\d+(\.\d*)?|\.\d+)\s*(ns|us|µs|μs|ms|s|m|h|d|w|hours?|days?|weeks?|minutes?|seconds?))+)$/;
const QUANTITY = /^[+-]?(\d+(\.\d*)?|\.\d+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?$/;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const HOSTNAME = /^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*\.?$/;
const UUID = /^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$/i;
const MAC = /^([0-9a-f]{2}[:-]){5}[0-9a-f]{2}$/i;
const INT32 = 2 ** 31;

/** Formats of strings that are checked; any other format is a remark, as in Kubernetes. */
const STRING_FORMATS: Readonly<Record<string, (text: string) => boolean>> = {
  "date-time": (text) => DATE_TIME.test(text) && !Number.isNaN(Date.parse(text)),
  datetime: (text) => DATE_TIME.test(text) && !Number.isNaN(Date.parse(text)),
  date: (text) => /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text)),
  duration: (text) => DURATION.test(text),
  quantity: isQuantity,
  byte: (text) => BASE64.test(text.replace(/[\r\n]/g, "")),
  ipv4: (text) => isIP(text) === 4,
  ipv6: (text) => isIP(text) === 6,
  ip: (text) => isIP(text) !== 0,
  cidr: isCidr,
  hostname: (text) => text.length <= 253 && HOSTNAME.test(text),
  uri: (text) => URL.canParse(text),
  email: (text) => /^[^@\s]+@[^@\s]+$/.test(text),
  uuid: (text) => UUID.test(text),
  mac: (text) => MAC.test(text),
};

export function stringFitsFormat(format: string, text: string): boolean {
  return STRING_FORMATS[format]?.(text) ?? true;
}

export function numberFitsFormat(format: string, value: number): boolean {
  if (format === "int32") return value >= -INT32 && value < INT32;
  return true;
}

/** An amount such as `100m`, `1.5Gi` or `2e3`. */
function isQuantity(text: string): boolean {
  return QUANTITY.test(text);
}

function isCidr(text: string): boolean {
  const [address = "", length = "", more] = text.split("/");
  const family = isIP(address);
  if (family === 0 || more !== undefined || !/^\d{1,3}$/.test(length)) return false;
  return Number(length) <= (family === 4 ? 32 : 128);
}
