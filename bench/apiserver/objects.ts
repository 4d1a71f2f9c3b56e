/** A ConfigMap of the smallest useful kind: about 200 bytes as sent. */
export function configMap(name: string, value: string): string {
  return JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data: { key: value } });
}

/** A pod as a Deployment makes them: about 2.5 KB once the server has filled it in. No scheduler is asked, so that a real cluster does not run it. */
export function pod(name: string): string {
  const env = Array.from({ length: 6 }, (_, i) => ({ name: `SETTING_${i}`, value: `a value of middling length ${i}` }));
  const probe = (path: string) => ({ httpGet: { path, port: "http", scheme: "HTTP" }, periodSeconds: 10 });
  const container = {
    name: "app",
    image: "registry.example.com/team/app:v1.4.2",
    args: ["--listen=:8080", "--log-level=info"],
    env,
    ports: [{ name: "http", containerPort: 8080, protocol: "TCP" }],
    resources: { requests: { cpu: "100m", memory: "128Mi" }, limits: { memory: "256Mi" } },
    livenessProbe: probe("/healthz"),
    readinessProbe: probe("/readyz"),
    volumeMounts: [{ name: "config", mountPath: "/etc/app" }],
  };
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, labels: { app: "app", "pod-template-hash": "6f7c9d8b54" } },
    spec: {
      schedulerName: "nobody",
      automountServiceAccountToken: false,
      containers: [container],
      volumes: [{ name: "config", configMap: { name: "app" } }],
    },
  });
}
