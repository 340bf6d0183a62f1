import type { Fault } from './fault.ts'

const ENVELOPE = 'adapters/json-rpc/envelope.ts'
const CONNECTION = 'adapters/websocket/connection.ts'
const REQUESTS = 'adapters/client/requests.ts'
const WRITER = 'adapters/storage/commit-writer.ts'

/** Faults of the bindings, the clients and the engine. */
export const adapterFaults: readonly Fault[] = [
  { name: 'a request without an id is done', file: ENVELOPE, find: `if (id === undefined) return { kind: 'notification', method, params }`, replace: `if (id === undefined && method === 'cancelStream') return { kind: 'notification', method, params }` },
  { name: 'a condition that is no number is left out', file: 'adapters/json-rpc/service-parameters.ts', find: 'if (value !== undefined) conditions', replace: `if (value !== undefined && /^\\d{1,15}$/.test(value)) conditions` },
  { name: 'a stream over WebSocket has no end', file: CONNECTION, find: `    this.#outbox.send(streamEndFrame(id), true)`, replace: '' },
  { name: 'a stream over WebSocket is not canceled', file: CONNECTION, find: '?.stop?.abort()', replace: '?.stop' },
  { name: 'who reads slowly is not waited for', file: 'adapters/websocket/outbox.ts', unit: 'test/adapters/websocket.test.ts', find: 'if (this.#stream.writableLength > HIGH_WATER_BYTES) this.#drained ??= this.#wait()', replace: '' },
  { name: 'answers to calls do not wait for a client that reads nothing', file: CONNECTION, unit: 'test/adapters/websocket.test.ts', find: 'while (this.#outbox.drained) await this.#outbox.drained', replace: '' },
  { name: 'pipelined requests are answered all at once', file: 'adapters/http/in-turn.ts', unit: 'test/adapters/http.test.ts', find: 'if (!line.isBusy) {', replace: 'if (line) {' },
  { name: 'large tasks of one connection are read all at once', file: 'adapters/websocket/large-answer.ts', unit: 'test/adapters/large-answers.test.ts', find: 'void before.then(() => enter(leave))', replace: 'enter(leave)' },
  { name: 'events over HTTP have no ids', file: 'adapters/http/streaming.ts', find: 'sentEvent(encoding.encode(event), generation)', replace: 'sentEvent(encoding.encode(event), undefined)' },
  { name: 'an absolute target is judged by the Host header', file: 'adapters/http/incoming.ts', unit: 'test/adapters/card-addresses.test.ts', find: '{ scheme, host = headers.host ?? \'\', path } = partsOf(request)', replace: '{ scheme, path } = partsOf(request)\n  const host = headers.host ?? \'\'' },
  { name: 'a card gives the port of the request', file: 'adapters/http/handler.ts', unit: 'test/adapters/card-addresses.test.ts', find: 'originTaken(address.hostname, direct.socket, settings.hosts)', replace: 'address.origin' },
  { name: 'every upgrade is taken for a WebSocket', file: 'adapters/websocket/upgrades.ts', unit: 'test/adapters/other-upgrades.test.ts', find: "headers.upgrade?.toLowerCase() === 'websocket'", replace: 'headers.upgrade !== undefined' },
  { name: 'an encoded dot segment is resolved', file: 'adapters/http/incoming.ts', unit: 'test/adapters/http-bad-input.test.ts', find: '(?:\\.|%2e){1,2}', replace: '\\.{1,2}' },
  { name: 'a body in a content coding is read as it is', file: 'adapters/http/handler.ts', unit: 'test/adapters/http-bad-input.test.ts', find: 'codingRefusal(request) : undefined)', replace: 'undefined : undefined)' },
  { name: 'a 401 by REST has the body of JSON-RPC', file: 'adapters/http/handler.ts', unit: 'test/adapters/refusals.test.ts', find: 'versions), headers, binding)', replace: "versions), headers, 'JSONRPC')" },
  { name: 'a card without a version is of 1.0 alone', file: 'adapters/http/agent-card.ts', unit: 'test/adapters/legacy-servers.test.ts', find: "version === '' ? this.#merging?.withCard : undefined", replace: 'merging ? undefined : undefined' },
  { name: 'a card of both versions is signed in its 1.0 form alone', file: 'adapters/cards/canonical-forms.ts', unit: 'test/adapters/cards.test.ts', find: 'forms : [canonicalJson(content), ...forms]', replace: 'forms : forms' },
  { name: 'a card leaves out what the app serves elsewhere', file: 'adapters/http/interfaces.ts', unit: 'test/adapters/agent-card.test.ts', find: '[...here, ...interfaces]', replace: 'here' },
  { name: 'over the official gRPC server an error has no status', file: 'adapters/a2a-sdk/while-connected.ts', unit: 'test/adapters/a2a-sdk-servers.test.ts', find: "if (!res) return 'grpc'", replace: "if (!res) return 'jsonrpc'" },
  { name: 'beside Express an error keeps the status 200', file: 'adapters/a2a-sdk/express-errors.ts', unit: 'test/adapters/a2a-sdk-servers.test.ts', find: 'isRpc ? rpcStatus(error)', replace: 'isRpc ? 200' },
  { name: 'a file gets the name of a device', file: 'adapters/cli/file-name.ts', unit: 'test/adapters/cli-send.test.ts', find: '\\s*(?:\\.|$)/i', replace: '(?:\\.|$)/i' },
  { name: 'an error by REST has the status of another', file: 'adapters/http/answers.ts', find: 'status ?? http)', replace: '500)' },
  { name: 'a body of another type is a bad request by REST', file: 'adapters/http/media-type.ts', unit: 'test/adapters/http-bad-input.test.ts', find: '? 415 : undefined', replace: '? 400 : undefined' },
  { name: 'a message without kind is answered with kind', file: 'adapters/legacy/v03.ts', unit: 'test/adapters/legacy.test.ts', find: 'return isBareMessage(params) ?? dotted', replace: 'return isBareMessage(params) === undefined && dotted' },
  { name: 'a frame that calls nothing uses no quota', file: CONNECTION, unit: 'test/adapters/strays.test.ts', find: 'this.#count(bytes, params) ?? error', replace: 'error' },
  { name: 'a client goes on one generation too far', file: REQUESTS, find: 'this.#generation > 0 ? { afterGeneration: this.#generation } : {}', replace: 'this.#generation > 0 ? { afterGeneration: this.#generation + 1 } : {}' },
  { name: 'a client sends a message again that may be taken twice', file: REQUESTS, unit: 'test/adapters/websocket-reconnect.test.ts', find: 'return reliable || REPEATABLE.includes(this.frame.method) ? this.frame : undefined\n  }\n\n  ended(): void {\n    this.failed', replace: 'return reliable || this.frame ? this.frame : undefined\n  }\n\n  ended(): void {\n    this.failed' },
  { name: 'a client sends nothing again', file: 'adapters/websocket/client-calls.ts', find: 'request.frame : request.again(this.#isReliable)', replace: 'request.frame : undefined' },
  { name: 'a card is fetched from whatever place it redirects to', file: 'adapters/client/discovery.ts', unit: 'test/adapters/card-limits.test.ts', find: 'target?.origin === new URL(href).origin', replace: 'target' },
  { name: 'credentials go to another port of the same host', file: 'adapters/client/hosts.ts', unit: 'test/adapters/connecting.test.ts', find: 'return new URL(withHttp(address)).origin', replace: 'return new URL(withHttp(address)).origin.replace(/:\\d+$/, "")' },
  { name: 'a client that connects again ends at a gateway in trouble', file: 'adapters/websocket/client-socket.ts', unit: 'test/adapters/client-retries.test.ts', find: 'if (passing) return passing', replace: 'if (passing && status !== 502) return passing' },
  { name: "a client reads any JSON with an error as the agent's", file: 'adapters/client/json-rpc-error.ts', unit: 'test/adapters/client-retries.test.ts', find: "jsonrpc === '2.0' && isObject(error) && Number.isInteger(error.code)", replace: "isObject(error) && jsonrpc !== error" },
  { name: 'a message that may have been taken is said to have failed', file: 'adapters/client/lost-errors.ts', unit: 'test/adapters/client-retries.test.ts', find: 'if (!isA2AError(error) || !BEFORE_A_LOOK.includes(error.code)) return error', replace: 'if (!isA2AError(error) || method) return error' },
  { name: 'to a question of 0.3 the stream does not close', file: 'adapters/legacy/v03.ts', find: '{ ...event, final: true } : event', replace: 'event : event' },
  { name: 'who sends by 0.3 does not wait', file: 'adapters/legacy/v03-requests.ts', find: '{ ...params, configuration: { blocking: true, ...configuration } }', replace: '{ ...params, configuration }' },
  { name: 'the file does not say where the status of a task is', file: WRITER, unit: 'test/adapters/storage.test.ts', find: 'Object.assign(task, { state, time, statusAt: generation })', replace: 'Object.assign(task, { state, time })' },
  { name: 'the file has no journal', file: WRITER, unit: 'test/adapters/storage.test.ts', find: 'for (const row of journal) this.#journal.write(this.#taskIn(context, row.taskId), row)', replace: '' },
  { name: 'the file is written by who has lost the race', file: WRITER, unit: 'test/adapters/storage.test.ts', find: 'if ((known?.commits ?? 0) !== expected) return false', replace: '' },
  { name: 'the file keeps the first snapshot of a task', file: WRITER, unit: 'test/adapters/storage.test.ts', find: 'else if (isThere) this.#changeSnapshot({ task, snapshot })', replace: 'else if (isThere) return' },
  { name: 'a task is read from the file by anybody', file: 'adapters/storage/reads.ts', unit: 'test/adapters/storage.test.ts', find: 'return row?.scope === number ? read(row) : undefined', replace: 'return row ? read(row) : undefined' },
  { name: 'the file serves one principal until it has no more requests', file: 'adapters/storage/fair-queue.ts', unit: 'test/adapters/storage.test.ts', find: 'user.cost += cost', replace: '' },
  { name: 'a page of a list of the file repeats its first task', file: 'adapters/storage/task-lister.ts', unit: 'test/adapters/storage.test.ts', find: '(time, taskId) < (?, ?)', replace: '(time, taskId) <= (?, ?)' },
  { name: 'a task that lives is removed from the file with the old ones', file: 'adapters/storage/removals.ts', unit: 'test/adapters/storage.test.ts', find: 'WHERE endedAtMs IS NOT NULL AND endedAtMs < ? ORDER', replace: 'WHERE COALESCE(endedAtMs, 0) < ? ORDER' },
  { name: 'a file that needs its log is opened without it', file: 'adapters/storage/engine.ts', unit: 'test/adapters/parted-files.test.ts', find: "    fault('P18')\n    this.#files.markWithLog()", replace: '' },
  { name: 'a store goes on after its file was removed', file: 'adapters/storage/engine.ts', unit: 'test/adapters/parted-files.test.ts', find: '      this.#files.check()\n', replace: '' },
  { name: 'free pages stay in the file', file: 'adapters/storage/engine.ts', unit: 'test/adapters/storage-room.test.ts', find: 'if (free > KEPT_PAGES) {', replace: 'if (free > KEPT_PAGES * KEPT_PAGES) {' },
  { name: 'what is removed at once has no bound in bytes', file: 'adapters/storage/removals.ts', unit: 'test/adapters/storage-room.test.ts', find: '(left > 0 ? limit - removed : 0)', replace: 'limit - removed' },
  { name: 'the log grows beside readers', file: 'adapters/storage/engine.ts', unit: 'test/adapters/storage-room.test.ts', find: `this.#writeBack('RESTART', READERS_MS)`, replace: `this.#writeBack('PASSIVE', READERS_MS)` }
]
