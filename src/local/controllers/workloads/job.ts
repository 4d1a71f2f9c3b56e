import { JOBS } from "../../../cluster/kinds.ts";
import type { ControllerContext, ControllerLoop } from "../controller-context.ts";
import { controllerOf } from "../garbage/owner-references.ts";
import { semanticEqual } from "../semantic-equal.ts";
import type { Container, Job, Pod } from "../workload-types.ts";
import { Expectations } from "./expectations.ts";
import { finishedCondition, INDEX_ANNOTATION, indexed, type JobPlan, planJob } from "./job-plan.ts";
import { createPodControl, podFromTemplate } from "./pod-control.ts";
import { isNamespaceLeaving } from "./replica-set.ts";
import { randomSuffix } from "./template-hash.ts";

export function jobLoop(context: ControllerContext): ControllerLoop {
  const { informers, clock } = context;
  const client = context.clientFor("job-controller");
  const recorder = context.recorderFor({ component: "job-controller" });
  const expectations = new Expectations(clock);
  const pods = createPodControl(client, recorder, expectations);

  const report = async (job: Job, plan: JobPlan) => {
    if (semanticEqual(job.status ?? {}, plan.status)) return;
    const status = plan.status;
    await client.replace(JOBS, { ...job, status }, { subresource: "status" });
    const ended = finishedCondition({ ...job, status });
    if (!ended || finishedCondition(job)) return;
    if (ended.type === "Complete") recorder.record(job, "Normal", "Completed", "Job completed");
    else recorder.record(job, "Warning", ended.reason ?? "Failed", ended.message ?? "");
  };

  return {
    name: "job",
    workers: 5,
    watch(enqueue) {
      informers.jobs.onChange(({ key, type, object }) => {
        if (type === "deleted") expectations.forget(object.metadata.uid ?? "");
        enqueue(key);
      });
      informers.pods.onChange((change) => {
        expectations.observe(change);
        const owner = controllerOf(change.object);
        if (owner?.kind === "Job") enqueue(`${change.object.metadata.namespace}/${owner.name}`);
      });
    },
    async reconcile(key) {
      const job = informers.jobs.get(key);
      if (!job) return undefined;
      const uid = job.metadata.uid ?? "";
      const owned = informers.podsByOwner.get(uid);
      const plan = planJob({ job, pods: owned, settled: expectations.settled(uid), now: clock.now() });
      if (plan.expire) {
        await client.delete(JOBS, job.metadata, { propagationPolicy: "Background", preconditions: { uid } });
        return undefined;
      }
      try {
        await pods.create(
          job,
          plan.create.map((index) => jobPod(job, index)),
        );
      } catch (error) {
        if (!isNamespaceLeaving(error)) throw error;
      }
      await pods.remove(job, plan.remove);
      await report(job, plan);
      return plan.recheckMs;
    },
  };
}

function jobPod(job: Job, index: number | undefined): Pod {
  const pod = podFromTemplate(job, job.spec.template);
  const { name, uid = "" } = job.metadata;
  const labels: Record<string, string> = {
    ...pod.metadata.labels,
    "batch.kubernetes.io/controller-uid": uid,
    "batch.kubernetes.io/job-name": name,
    "controller-uid": uid,
    "job-name": name,
  };
  if (index === undefined || !indexed(job)) return { ...pod, metadata: { ...pod.metadata, labels } };
  labels[INDEX_ANNOTATION] = String(index);
  const annotations = { ...pod.metadata.annotations, [INDEX_ANNOTATION]: String(index) };
  const hostname = `${name}-${index}`;
  return {
    ...pod,
    metadata: { ...pod.metadata, name: `${hostname}-${randomSuffix()}`, generateName: undefined, labels, annotations },
    spec: { ...pod.spec, hostname, containers: pod.spec.containers.map((container) => withIndex(container, index)) },
  };
}

function withIndex(container: Container, index: number): Container {
  const env = (container["env"] as { name: string; value?: string }[] | undefined) ?? [];
  const others = env.filter(({ name }) => name !== "JOB_COMPLETION_INDEX");
  return { ...container, env: [...others, { name: "JOB_COMPLETION_INDEX", value: String(index) }] };
}
