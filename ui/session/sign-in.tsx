import { useRef } from "preact/hooks";
import { refusal, signIn } from "../page-state.ts";

/** Until there is a session: a token is asked for, or why there is none is said. */
export function SignIn() {
  const field = useRef<HTMLInputElement>(null);
  const why = refusal.value;
  if (!why) return <main class="empty">Opening…</main>;
  if (why.status !== 401) {
    return (
      <main class="empty">
        <p role="alert">{why.message}</p>
        <button type="button" onClick={() => void signIn("")}>
          Try again
        </button>
      </main>
    );
  }
  const submit = (event: Event) => {
    event.preventDefault();
    const given = field.current?.value.trim() ?? "";
    if (field.current) field.current.value = "";
    void signIn(given);
  };
  return (
    <main class="empty">
      <form class="sign-in" onSubmit={submit}>
        <h2>Sign in</h2>
        <label for="token">A token of the cluster, for example of kubectl create token</label>
        <input id="token" type="password" autocomplete="off" required ref={field} />
        <p class="problem" role="alert">
          {why.message}
        </p>
        <button type="submit" class="go">
          Sign in
        </button>
        <p class="dim">The page keeps it in memory alone: it is gone with this tab.</p>
      </form>
    </main>
  );
}
