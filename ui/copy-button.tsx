import { useState } from "preact/hooks";

interface CopyButtonProps {
  label: string;
  text: string;
}

/** Copies, and says so. Where the browser does not let the page write to the clipboard, the text is there to be copied. */
export function CopyButton({ label, text }: CopyButtonProps) {
  const [said, setSaid] = useState<{ of: string; isCopied: boolean }>();
  const copy = async () => {
    const isCopied = await navigator.clipboard?.writeText(text).then(
      () => true,
      () => false,
    );
    setSaid({ of: text, isCopied: isCopied === true });
  };
  return (
    <>
      <button type="button" onClick={() => void copy()}>
        {label}
      </button>
      <span aria-live="polite">{said?.of === text && (said.isCopied ? "Copied." : "Select the text to copy it.")}</span>
    </>
  );
}
