// Calls to the deployment's own API from a run of auditrun.
//
//     const auditrun = require("./auditrun.js");   // or import { call } from "./auditrun.js"
//     await auditrun.call("invoices.read", { year: 2026 });
//
// The calls that are granted are answered by the deployment; every other one rejects with an AuditrunError.
"use strict";

const net = require("node:net");

// The call was refused, or failed: code (a number), message, and data (or undefined).
class AuditrunError extends Error {
  constructor(code, message, data) {
    super(message);
    this.name = "AuditrunError";
    this.code = code;
    this.data = data;
  }
}

let socket;
let number = 0;
let held = Buffer.alloc(0);
const waiting = new Map(); // id: {resolve, reject}, in the order of the calls

function unavailable() {
  return new AuditrunError(-32015, "unavailable");
}

// A program that waits for nothing may end.
function settle(id, answer) {
  const call = waiting.get(id);
  if (!call) return;
  waiting.delete(id);
  if (waiting.size === 0) socket.unref();
  if (answer instanceof Error) call.reject(answer);
  else if (answer.error) {
    call.reject(new AuditrunError(answer.error.code, answer.error.message, answer.error.data));
  } else call.resolve(answer.result);
}

// An answer without an id is to a line that could not be read: to the only one that waits, or to
// nobody knows which.
function take(line) {
  const answer = JSON.parse(line);
  if (answer.id !== null) settle(answer.id, answer);
  else for (const id of [...waiting.keys()]) settle(id, answer);
}

function receive(chunk) {
  held = held.length > 0 ? Buffer.concat([held, chunk]) : chunk;
  for (let end = held.indexOf(10); end >= 0; end = held.indexOf(10)) {
    const line = held.subarray(0, end).toString();
    held = held.subarray(end + 1);
    take(line);
  }
}

function connect() {
  const fd = Number.parseInt(process.env.AUDITRUN_API_FD ?? "", 10);
  if (!Number.isInteger(fd)) throw new AuditrunError(-32601, "method_not_granted");
  socket = new net.Socket({ fd, readable: true, writable: true });
  socket.on("data", receive);
  socket.on("error", () => {});
  socket.on("close", () => {
    for (const id of [...waiting.keys()]) settle(id, unavailable());
  });
}

// Calls a method with an object or a list of parameters; a promise of its result.
async function call(method, params) {
  if (!socket) connect();
  if (socket.destroyed) throw unavailable();
  const id = ++number;
  const line = JSON.stringify({ jsonrpc: "2.0", id, method, params }) + "\n";
  return new Promise((resolve, reject) => {
    waiting.set(id, { resolve, reject });
    socket.ref();
    socket.write(line);
  });
}

module.exports = { call, AuditrunError };
