import { SERVICES } from "../../../cluster/kinds.ts";
import type { ControllerContext, ControllerLoop } from "../controller-context.ts";
import { semanticEqual } from "../semantic-equal.ts";
import type { Service } from "../workload-types.ts";
import { AddressPool } from "./address-pool.ts";

export interface LoadBalancerOptions {
  /** Where addresses come from, such as `203.0.113.0/24`. */
  range: string;
  /** Clouds that give names instead of addresses: the name for a service's address. */
  hostname?: (service: Service, ip: string) => string;
}

/** With no address left a service waits until one is given back. */
const FULL_RECHECK_MS = 500;

type Ingress = { ip?: string; hostname?: string; ipMode?: string };

/** The part of a cloud that gives LoadBalancer services an address of their own. */
export function loadBalancerLoop(context: ControllerContext, options: LoadBalancerOptions): ControllerLoop {
  const { informers } = context;
  const client = context.clientFor("service-lb-controller");
  const recorder = context.recorderFor({ component: "service-controller" });
  const pool = new AddressPool(options.range);
  const given = new Map<string, string>();
  return {
    name: "service-lb",
    workers: 1,
    watch(enqueue) {
      informers.services.onChange(({ key, object, type }) => {
        // Addresses given before a restart are remembered by the services that have them.
        const ip = object.status?.loadBalancer?.ingress?.[0]?.ip;
        if (type === "added" && ip && wantsAddress(object) && !given.has(key) && pool.allocate(ip)) given.set(key, ip);
        enqueue(key);
      });
    },
    async reconcile(key) {
      const service = informers.services.get(key);
      if (!service || service.metadata.deletionTimestamp || !wantsAddress(service)) {
        const ip = given.get(key);
        if (ip) pool.free(ip);
        given.delete(key);
        if (service?.status?.loadBalancer?.ingress) await writeIngress(service, undefined);
        return undefined;
      }
      const ip = given.get(key) ?? chooseAddress(pool, service);
      if (ip === undefined) {
        recorder.record(
          service,
          "Warning",
          "SyncLoadBalancerFailed",
          "no address is free in the load balancer's range",
        );
        return FULL_RECHECK_MS;
      }
      given.set(key, ip);
      const name = options.hostname?.(service, ip);
      await writeIngress(service, name ? [{ hostname: name }] : [{ ip, ipMode: "VIP" }]);
      return undefined;
    },
  };

  async function writeIngress(service: Service, ingress: Ingress[] | undefined) {
    if (semanticEqual(service.status?.loadBalancer?.ingress, ingress)) return;
    const status = { ...service.status, loadBalancer: ingress ? { ingress } : {} };
    await client.replace(SERVICES, { ...service, status }, { subresource: "status" });
    if (ingress) recorder.record(service, "Normal", "EnsuredLoadBalancer", "Ensured load balancer");
  }
}

function wantsAddress({ spec }: Service): boolean {
  return spec.type === "LoadBalancer" && spec.loadBalancerClass === undefined;
}

function chooseAddress(pool: AddressPool, { spec }: Service): string | undefined {
  const asked = spec.loadBalancerIP;
  return asked && pool.covers(asked) && pool.allocate(asked) ? asked : pool.allocateAny();
}
