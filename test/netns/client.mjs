// Asks from one place, as a process of its own: questions as JSON on the command line, all at once, and their answers as one line of JSON.
// An answer is whatever the server of test/switchover/traffic.mjs said: who answers, whom it saw, and the word it was told.
import { createSocket } from "node:dgram";
import { connect } from "node:net";

const AGAIN_MS = 200;
const questions = JSON.parse(process.argv[2]);
process.stdout.write(`${JSON.stringify(await Promise.all(questions.map(askEach)))}\n`);
process.exit(0);

/** One try after the other, so that a service that remembers its clients can, until one is not answered. */
async function askEach({ tries = 1, ...question }) {
  const ends = [];
  while (ends.length < tries && !ends.at(-1)?.end) ends.push(await (question.udp ? overUdp : overTcp)(question));
  return ends;
}

function overTcp({ host, port, from, length = 1, patienceMs }) {
  return new Promise((resolve) => {
    const word = "x".repeat(length);
    const socket = connect({ host, port, ...(from ? { localAddress: from } : {}) });
    let text = "";
    const end = (how) => {
      clearTimeout(late);
      socket.destroy();
      resolve(how);
    };
    const late = setTimeout(() => end({ end: text ? "cut" : "silence" }), patienceMs);
    socket.on("connect", () => socket.write(`${word}\n`));
    socket.on("error", ({ code }) => end({ end: code }));
    socket.on("close", () => end({ end: "closed" }));
    socket.on("data", (chunk) => {
      text += chunk;
      if (text.endsWith("\n")) end(said(text.trimEnd(), word));
    });
  });
}

/** Datagrams may be lost, so they are said again; what comes from somebody else than was asked is told. */
function overUdp({ host, port, from, length = 1, udp, patienceMs }) {
  return new Promise((resolve) => {
    const word = "x".repeat(length);
    const socket = createSocket(host.includes(":") ? "udp6" : "udp4");
    const isConnected = udp === "connected";
    let again;
    const end = (how) => {
      clearTimeout(late);
      clearInterval(again);
      socket.close();
      resolve(how);
    };
    const late = setTimeout(() => end({ end: "silence" }), patienceMs);
    // Too long for the way there, as a router on it said: cut into pieces, it fits the next time.
    socket.on("error", ({ code }) => code !== "EMSGSIZE" && end({ end: code }));
    socket.on("message", (message, sender) => {
      const isAsked = sender.address === host && sender.port === port;
      end(isAsked ? said(String(message), word) : { end: `answered by ${sender.address}:${sender.port}` });
    });
    const send = () => {
      if (isConnected) socket.send(word, () => undefined);
      else socket.send(word, port, host, () => undefined);
    };
    const begin = () => {
      send();
      again = setInterval(send, AGAIN_MS);
    };
    socket.bind(0, from, () => {
      if (isConnected) socket.connect(port, host, begin);
      else begin();
    });
  });
}

function said(text, word) {
  const [by, client, back] = text.split(" ");
  return back === word ? { by, client: client.replace(/^::ffff:(?=\d+\.)/, "") } : { end: "another word came back" };
}
