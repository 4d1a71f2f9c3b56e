import { parseCidr } from "../../../kit/ip.ts";
import { parsePath } from "../../../procedures/plans/field-path.ts";
import type { ApiAddress } from "../../../procedures/plans/install/api-address.ts";
import { errors } from "../../errors.ts";

/** `HOST:PORT`; an IPv6 address stands in brackets, as in a URL. */
export function hostAndPort(flag: string): (text: string) => ApiAddress {
  return (text) => {
    const [, bracketed, plain, port = ""] = /^(?:\[([0-9a-f:.]+)\]|([^\s:/[\]]+)):(\d{1,5})$/i.exec(text) ?? [];
    const host = bracketed ?? plain;
    if (host !== undefined && Number(port) >= 1 && Number(port) <= 65_535) return { host, port: String(Number(port)) };
    throw errors.BAD_VALUE(flag, text, "HOST:PORT without a scheme, such as api.example.com:6443");
  };
}

export function cidr(flag: string): (text: string) => string {
  return (text) => {
    if (parseCidr(text)) return text;
    throw errors.BAD_VALUE(flag, text, "a prefix such as 10.244.0.0/16");
  };
}

/** A field of the Installation, and the text of its value, which is YAML: `true` is no text. */
export interface FieldEdit {
  path: readonly (string | number)[];
  text: string;
}

/** `PATH=VALUE`, as often as wanted. */
export function fieldEdits(flag: string): (text: string, before?: readonly FieldEdit[]) => FieldEdit[] {
  return (text, before = []) => {
    const at = text.indexOf("=");
    const path = at > 0 ? parsePath(text.slice(0, at)) : undefined;
    if (path?.[0] !== "spec" || path.length < 2 || at === text.length - 1) {
      const expected = "a field of the Installation and its value, such as spec.vendorNetwork.mtu=1400";
      throw errors.BAD_VALUE(flag, text, expected);
    }
    return [...before, { path, text: text.slice(at + 1) }];
  };
}
