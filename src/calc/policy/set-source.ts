import { createHash } from "node:crypto";
import { printExpression, type SelectorExpression } from "../../api/schema/selector-expression.ts";
import { PORT_PROTOCOLS } from "../../api/tables/protocols.ts";

/** What a set stands for. Sets of the same meaning have the same id, so all rules that mean it share one. */
export type SetSource =
  | { id: string; kind: "net"; meaning: string; of: "selector"; selector: SelectorExpression }
  | {
      id: string;
      kind: "net-port";
      meaning: string;
      of: "namedPort";
      selector: SelectorExpression;
      protocol: number;
      port: string;
    }
  | { id: string; kind: "net" | "net-port"; meaning: string; of: "service"; namespace: string; name: string }
  | { id: string; kind: "account"; meaning: string; of: "account"; selector: SelectorExpression };

/** Gathers the sets the rules of one policy use. */
export class SetCollector {
  readonly sets = new Map<string, SetSource>();

  /** Addresses of everything the selector matches. */
  selected(selector: SelectorExpression): string {
    const meaning = printExpression(selector);
    return this.#add({ id: setId("net", meaning), kind: "net", meaning, of: "selector", selector });
  }

  /** Address and port of everything the selector matches that gives a port this name. */
  namedPort(selector: SelectorExpression, protocol: number, port: string): string {
    const meaning = `${port}/${PORT_PROTOCOLS.get(protocol) ?? protocol} of ${printExpression(selector)}`;
    const id = setId("net-port", meaning);
    return this.#add({ id, kind: "net-port", meaning, of: "namedPort", selector, protocol, port });
  }

  /** Backends of a service; with their ports, or their addresses alone. */
  service(namespace: string, name: string, kind: "net" | "net-port"): string {
    const meaning = `service ${namespace}/${name}`;
    return this.#add({ id: setId(kind, meaning), kind, meaning, of: "service", namespace, name });
  }

  /** Service accounts that the selector matches, asked as it is asked of pods under them. */
  accounts(selector: SelectorExpression): string {
    const meaning = printExpression(selector);
    return this.#add({ id: setId("account", meaning), kind: "account", meaning, of: "account", selector });
  }

  #add(source: SetSource): string {
    this.sets.set(source.id, source);
    return source.id;
  }
}

function setId(kind: string, meaning: string): string {
  return `s${createHash("sha256").update(`${kind} ${meaning}`).digest("hex").slice(0, 16)}`;
}
