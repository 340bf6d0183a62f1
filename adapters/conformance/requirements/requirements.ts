import type { Need } from './needs.ts'

/** The level in A2A: MUST, SHOULD, both in parts, or left open. */
export type Level = 'M' | 'S' | 'M/S' | 'D'

/** One requirement of A2A 1.0 (docs/conformance.md has them all). */
export interface Requirement {
  readonly id: number
  readonly level: Level
  /** The section of A2A that defines it. */
  readonly section: string
  readonly says: string
  /** The prerequisites for a test of an unknown server. The first missing one is the reason for skipping. */
  readonly needs: readonly Need[]
}

/** All requirements, in the order of their numbers. */
export const REQUIREMENTS: readonly Requirement[] = [
  row(1, 'M', '5.5', 'Names in JSON are camelCase', 'json'),
  row(2, 'M', '5.5', 'Enums are the names of the proto', 'json'),
  row(3, 'M', '5.6.1', 'Timestamps are ISO 8601 in UTC, written with Z', 'json', 'times'),
  row(4, 'S', '5.6.1', 'Timestamps have milliseconds', 'json', 'times'),
  row(5, 'M', '4, 5.7', 'Required fields are there in everything emitted'),
  row(6, 'S', '3.3.2, 5.7', 'A request that lacks a required field is refused, and the field is named'),
  row(7, 'M', '5.7', 'A message without parts is invalid'),
  row(8, 'S', '5.7', 'Unknown fields are ignored, at any depth'),
  row(9, 'M', '3.2.3, 4.1.6', 'A part has exactly one content, an answer and an event exactly one member', 'json'),
  row(10, 'M', '4.1.6, 5.5', 'Bytes are base64', 'json', 'bytes'),
  row(11, 'M', 'A.2.1', 'Nothing emitted has kind or final', 'json'),
  row(12, 'D', '5.5', 'snake_case names and enum numbers are understood, null is data', 'open'),
  row(13, 'M', '14.1', 'Text is UTF-8', 'json'),
  row(
    14,
    'M',
    '9.3',
    'JSON-RPC answers are of 2.0 and under the id of the request, null if there is none to tell',
    'rpc'
  ),
  row(15, 'M', '9.1', 'JSON-RPC over HTTP is application/json', 'rpcOverHttp'),
  row(16, 'M', '5.3, 9.1', 'The methods of JSON-RPC have the names of A2A', 'rpc'),
  row(17, 'M', '9.5', 'Bad JSON, no request, no such method and bad parameters have the codes of JSON-RPC', 'rpc'),
  row(
    18,
    'M',
    '9.4.2',
    'JSON-RPC streams are server-sent events, each a whole response under the id of the request',
    'rpcOverHttp',
    'streaming'
  ),
  row(19, 'M', '11.3', 'REST has the verbs and routes of A2A', 'rest'),
  row(20, 'S', '11.1', 'REST speaks application/a2a+json, and takes application/json', 'rest'),
  row(
    21,
    'M',
    '11.5',
    'REST reads parameters from path and query: camelCase, true and false, names of enums, ISO times, percent-encoded',
    'rest'
  ),
  row(22, 'M', '11.7', 'REST streams are server-sent events, each a StreamResponse', 'rest', 'streaming'),
  row(
    23,
    'M',
    '10.1, 10.7',
    'gRPC is lf.a2a.v1.A2AService, with streams from the server; the app that serves it adds TLS',
    'grpc'
  ),
  row(
    24,
    'D',
    '5.3, 11.3',
    'Subscribing works by GET and POST; tenants may stand in front, a slash behind, and an empty POST has no body',
    'open'
  ),
  row(25, 'M', '3.1.1', 'SendMessage gives a task or a message', 'answer'),
  row(26, 'M', '3.1.1, 4.1.4', "A message in reply is the agent's, names its context, and opens no task", 'reply'),
  row(
    27,
    'M',
    '3.1.1',
    'A task that has ended, in any of the four ways, takes no message: UnsupportedOperation',
    'ended'
  ),
  row(28, 'M', '3.1.1, 3.3.2', 'A part of a media type that the agent does not take: ContentTypeNotSupported', 'modes'),
  row(29, 'M', '3.4.2', 'An unknown taskId: TaskNotFound'),
  row(30, 'M', '3.4.2', 'A new task has an id of its own, made by the server', 'task'),
  row(31, 'M', '3.4.1', 'A contextId that the server made is in the answer', 'task'),
  row(32, 'M', '3.4.1', 'A contextId that the client made is kept, or refused', 'task'),
  row(33, 'M', '3.4.3', 'With a taskId alone the context is that of the task, and in all output', 'question'),
  row(34, 'M', '3.4.3', "A contextId that is not the task's is refused, and nothing has changed", 'task'),
  row(35, 'M', '3.2.2', 'Without more said it answers when the task has ended or asks, with all artifacts', 'stopped'),
  row(36, 'M', '3.2.2', 'It answers at a question, and at an authorization that is wanted', 'question'),
  row(37, 'M', '3.2.2', 'With returnImmediately it answers while the task works, which goes on', 'immediate'),
  row(38, 'M', '3.2.2', 'returnImmediately changes neither messages nor streams', 'reply'),
  row(39, 'M/S', '3.2.4', 'No more history than historyLength, and with 0 none', 'ended'),
  row(40, 'S', '3.2.2', 'Output follows acceptedOutputModes', 'inside'),
  row(41, 'S', '3.7', 'Results are artifacts, not messages', 'inside'),
  row(
    42,
    'S',
    '3.4.3',
    'Work is given the tasks that referenceTaskIds name; new tasks of one context run side by side',
    'inside'
  ),
  row(43, 'S', '3.4.1, 3.4.3', 'The agent can read what was said before in the context, and there alone', 'inside'),
  row(44, 'D', '3.2.2', 'An answer to a question waits for the next pause of the task', 'open'),
  row(45, 'D', '3.3.1', 'One messageId twice opens two tasks, unless the client asks for one', 'open'),
  row(
    46,
    'D',
    '3.3.3',
    'A message to a task that works is refused, or kept for its next question where the agent says so',
    'open'
  ),
  row(47, 'D', '3.5.2', 'A client that leaves while it waits stops no task', 'open'),
  row(
    48,
    'D',
    '3.4.3',
    'A refined artifact comes of a new task, under the same name and a new id; where several fit, the agent asks',
    'open'
  ),
  row(
    49,
    'M',
    '3.3.4',
    'Without the capability streams are refused: UnsupportedOperation; with it both operations are there'
  ),
  row(50, 'M', '3.1.2', 'A reply without a task is one message, then the stream closes', 'reply', 'streaming'),
  row(
    51,
    'M',
    '3.1.2',
    "A task's stream is first the task, then updates alone, and closes at its end",
    'ended',
    'streaming'
  ),
  row(52, 'M', '3.1.2', 'What is refused without a stream is refused with one', 'streaming'),
  row(53, 'M', '3.1.2', 'Progress comes while the task works, not at its end', 'streaming', 'immediate'),
  row(54, 'M', '3.5.2', 'Events come in the order in which they happened', 'ended', 'streaming'),
  row(55, 'M', '3.5.2', 'All streams of a task get all events, in one order', 'streaming', 'live'),
  row(56, 'M', '3.5.2', 'A stream that closes leaves the others, and the task, alone', 'streaming', 'live'),
  row(57, 'M', '3.1.6', 'A subscription begins with the task as it is', 'streaming', 'live'),
  row(58, 'M', '3.1.6', 'A subscription closes when the task ends, which is its last event', 'streaming', 'live'),
  row(59, 'M', '3.1.6', 'A task that has ended takes no subscription: UnsupportedOperation', 'ended', 'streaming'),
  row(60, 'M', '3.1.6', 'An unknown task takes no subscription: TaskNotFound', 'streaming'),
  row(61, 'S', '7.6.1', 'While an authorization is awaited streams stay open', 'streaming', 'auth'),
  row(
    62,
    'D',
    '3.1.6',
    'A task and its events have no gap and no repeat, whenever one subscribes',
    'streaming',
    'live'
  ),
  row(63, 'D', '3.1.2, 11.7', 'At a question a subscription stays open, and the stream of a message closes', 'open'),
  row(64, 'D', '4.2.2', 'Chunks put together are the artifact that GetTask shows', 'ended', 'streaming'),
  row(65, 'M', '3.1.3', 'GetTask gives the task as it is, with its artifacts; TaskNotFound for an unknown one', 'task'),
  row(66, 'M/S', '3.2.4', 'GetTask gives no more history than historyLength, the newest, and with 0 none', 'ended'),
  row(67, 'S', '3.7', 'History is in the order of time, and holds what was sent', 'history'),
  row(68, 'M', '3.1.4, 13.1', "ListTasks gives the caller's own tasks alone", 'callers'),
  row(69, 'M', '3.1.4', 'Over the pages of a list no task is missing, none comes twice', 'listed'),
  row(70, 'M', '3.1.4', 'The list begins with the latest status', 'listed'),
  row(71, 'M', '3.1.4', 'nextPageToken is always there, empty at the end', 'listed'),
  row(72, 'M/S', '3.1.4', 'A list has artifacts only where they are asked for, then always', 'listed'),
  row(73, 'M', '3.1.4', 'A list is filtered by context, status and time, this inclusive, and by all of them', 'listed'),
  row(
    74,
    'M',
    '3.1.4',
    'A page has 50 tasks unless another size from 1 to 100 is asked for, and says its size and that of all',
    'listed'
  ),
  row(
    75,
    'M/S',
    '3.3.2, 6.5',
    'A bad page size, status, length of history or page token is refused, and the field is named'
  ),
  row(76, 'M', '3.1.5', 'CancelTask gives the canceled task; streams tell that and close', 'live'),
  row(
    77,
    'M',
    '3.1.5',
    'A task that has ended cannot be canceled: TaskNotCancelable; an unknown one: TaskNotFound',
    'ended'
  ),
  row(78, 'M', '3.3.1', 'Canceling twice equals canceling once', 'live'),
  row(79, 'M', '3.3.1', 'Reading changes nothing', 'ended'),
  row(80, 'M', '3.1.1', 'A task that has ended never changes', 'ended'),
  row(
    81,
    'M',
    '3.3.4',
    'Without the capability every operation of push notifications is refused: PushNotificationNotSupported',
    'noPush',
    'task'
  ),
  row(
    82,
    'M',
    '3.1.7',
    'A configuration is kept, and comes back with its id; TaskNotFound for an unknown task',
    'push',
    'task',
    'webhookAccepted'
  ),
  row(
    83,
    'M',
    '3.1.7',
    'A configuration lasts at least until the task ends, unless it is deleted before',
    'push',
    'task',
    'webhookAccepted'
  ),
  row(
    84,
    'M',
    '3.1.8',
    'A configuration is read again; a missing or foreign one is an error',
    'push',
    'task',
    'webhookAccepted'
  ),
  row(85, 'M', '3.1.9', 'All configurations of a task are listed', 'push', 'task', 'webhookAccepted'),
  row(
    86,
    'M',
    '3.1.10',
    'A deleted configuration gets nothing more; deleting twice equals deleting once',
    'push',
    'task',
    'webhookAccepted'
  ),
  row(87, 'M', '4.3.3', 'What is pushed is a StreamResponse with one member', 'webhook'),
  row(88, 'M', '4.3.3, 13.2', 'Credentials are sent as configured', 'webhook'),
  row(89, 'M', '4.3.3', 'Each update is delivered at least once to each webhook', 'webhook'),
  row(90, 'S', '4.3.3, 13.2', 'It is retried with growing pauses, each attempt for 10 to 30 seconds', 'untried'),
  row(91, 'S', '13.2', 'Private, loopback and link-local addresses are refused', 'untried'),
  row(92, 'M', '3.5.1', 'Push notifications are equal whatever binding configured them', 'webhook'),
  row(93, 'M', '3.2.2, 6.6', 'A configuration in SendMessage belongs to its task', 'webhook'),
  row(94, 'S', '13.2', 'Secrets of configurations are kept safe', 'inside'),
  row(95, 'M', '3.3.2', 'An error has a code and a message, and details that name their types', 'json'),
  row(96, 'M', '5.4', 'Errors have the codes of the binding', 'json'),
  row(97, 'M/S', '9.5, 10.6, 11.6', 'The errors of A2A have an ErrorInfo with reason and domain'),
  row(
    98,
    'M',
    '11.6',
    'An error by REST is { error: { code, status, message, details } } under its HTTP status',
    'rest'
  ),
  row(
    99,
    'M/S',
    '3.3.2',
    'Parameters are checked before anything is done, and a refusal says which is wrong and what it has to be'
  ),
  row(
    100,
    'M/S',
    '3.3.2, 7.4',
    'Missing or invalid credentials are refused with a challenge: 401 with WWW-Authenticate',
    'credentials'
  ),
  row(
    101,
    'M/S',
    '3.3.2',
    'A caller without permission gets an authorization error, which may name the permission',
    'callers'
  ),
  row(102, 'M/S', '3.3.2', 'Resources of another caller look nonexistent', 'callers'),
  row(103, 'S', '3.3.2', 'Temporary errors differ from permanent ones, and may say when to retry', 'inside'),
  row(104, 'M', '3.6.2', 'An A2A-Version that is not served: VersionNotSupported'),
  row(105, 'M', '3.6.2', 'No version, or an empty one, means 0.3', 'one'),
  row(106, 'M', '3.6.2', 'A request is served as the version that it names has it, or not at all', 'old'),
  row(107, 'M/S', '3.6', 'Patch numbers do not count, and are not told'),
  row(108, 'M', '3.6.1', 'Clients name their version with every request; servers take it from the query too', 'client'),
  row(109, 'M', '3.2.6', 'Names of service parameters are the same in any case, their values are not', 'caseOfNames'),
  row(
    110,
    'M',
    '3.3.4',
    'Every request without a required extension is refused: ExtensionSupportRequired',
    'requiredExtension'
  ),
  row(111, 'M/S', '4.6.3', 'An unknown extension is ignored, and another version of a known one is unknown'),
  row(112, 'S', '4.6', 'Extensions that are active are named in the answer', 'extension'),
  row(113, 'M', '8.3.2', 'Clients send the tenant of the interface exactly, and none where there is none', 'client'),
  row(114, 'D', '8.3.2, 13.1', 'Resources of one tenant are invisible to others', 'open'),
  row(115, 'M', '3.6.3', 'Clients speak one version, and do not fall back to another silently', 'client'),
  row(116, 'M', '8.1, 14.3', 'The card is at its well-known place'),
  row(117, 'M', '4.4.1', 'The card has its required fields'),
  row(
    118,
    'M',
    '5.2, 8.3',
    'The card lists every binding that is served, with address, name and version, the preferred first'
  ),
  row(119, 'M', '8.3.2', 'Clients take the first interface that they speak, at its address', 'client'),
  row(120, 'S', '8.6.1', 'The card may be cached, and is asked for again by its ETag or date'),
  row(121, 'M', '3.3.4', 'Without the capability GetExtendedAgentCard is refused: UnsupportedOperation', 'noExtended'),
  row(
    122,
    'M',
    '3.3.4',
    'Declared, GetExtendedAgentCard gives a card or is refused: ExtendedAgentCardNotConfigured',
    'extended',
    'key'
  ),
  row(123, 'M', '13.3', 'The extended card is only for authenticated and authorised callers', 'extended'),
  row(124, 'S', '13.3', 'The extended card may be cached privately, but not by proxies', 'untried'),
  row(125, 'M', '8.4', 'A signature is over the canonical card, and verifies', 'signature'),
  row(126, 'M', '8.4.3', 'A verifier rejects expired keys and changed cards', 'client'),
  row(127, 'S', '8.4.3', 'A client checks a signature before it trusts a card', 'client'),
  row(128, 'M', '5.1', 'All operations are there'),
  row(129, 'M', '5.1', 'A task that was opened here is the same on every other binding', 'others'),
  row(130, 'M', '5.1', 'What is refused on one binding is refused on the others, with the same error', 'others'),
  row(
    131,
    'M',
    '5.1',
    'Credentials that are good on one binding are good on the others, for the same tasks',
    'callers'
  ),
  row(132, 'M', '7.1, 13.4', 'In production there is TLS', 'inside'),
  row(133, 'M', '7.4', 'Every request identifies its caller, every frame of a connection too', 'inside'),
  row(134, 'M', '13.1', 'Each operation is checked for its caller, before anything is looked up or done', 'inside'),
  row(135, 'M', '13.1', 'Results are limited to what the caller may see, even without filters', 'callers'),
  row(
    136,
    'S',
    '13.4',
    'What is too large, nested too deep, or of a media type that is not taken is refused',
    'untried'
  ),
  row(137, 'S', '13.4', 'Too much at once is refused with an error that says so', 'inside'),
  row(138, 'M/S', '13.4', 'The log has no credentials; it has what went wrong with them', 'inside'),
  row(139, 'M', '14.1.1', 'Addresses of files are checked before they are fetched', 'inside'),
  row(140, 'M', '7.6.1', 'An authorization is asked for in a task, by its state and a message', 'auth'),
  row(141, 'M', '7.6.1', 'An authorization comes out of band, and the task goes on without a message', 'outOfBand'),
  row(142, 'S', '7.6.1', 'While an authorization is awaited, messages are accepted', 'auth'),
  row(143, 'M', '7.6.4', 'An authorization applies only to the task that asked, and a message is not one', 'inside'),
  row(144, 'M', '12.1', 'All eleven operations are there', 'websocket'),
  row(
    145,
    'M',
    '12.3',
    'Service parameters come with the handshake, in headers or query, and with a frame, whose count for it',
    'websocket',
    'untried'
  ),
  row(
    146,
    'M',
    '5.4, 12.4',
    'All errors of A2A and of JSON-RPC differ, with their details, and are in the text',
    'websocket',
    'untried'
  ),
  row(
    147,
    'M',
    '3.5.2, 12.5',
    'Each stream is in order and its end is signalled; the others go on',
    'websocket',
    'streaming'
  ),
  row(
    148,
    'M',
    '12.5',
    'After a lost connection tasks have gone on, and a subscription begins with the task as it is',
    'websocket',
    'untried'
  ),
  row(
    149,
    'M',
    '12.6',
    'Credentials come with the handshake; without them it is refused, with a challenge',
    'websocket',
    'untried'
  ),
  row(150, 'M', '5.8, 12.7', 'The card lists it by a URI, with its address and version', 'websocket'),
  row(
    151,
    'S',
    '12.8',
    'Large payloads, errors and long tasks are tried, and samples and deviations are in the text',
    'websocket',
    'untried'
  ),
  row(
    152,
    'D',
    '12.5',
    'A live id is refused; cancelStream ends no task; binary and oversized frames, foreign pages and dead or slow clients are dealt with',
    'open'
  ),
  row(153, 'D', '12.5', 'While a thousand streams are open on a connection calls are answered as ever', 'open'),
  row(154, 'D', '9.3', 'message/send answers with a task or a message itself, and its kind', 'old'),
  row(155, 'D', '9.4', 'The last event of a stream is final, and it alone', 'old'),
  row(
    156,
    'D',
    '9.3',
    'States and roles have the names of 0.3: in JSON-RPC lower case with hyphens, in REST TASK_STATE_CANCELLED',
    'old'
  ),
  row(157, 'D', '9.3', 'Files are parts with bytes or a uri, a name and a type inside', 'old'),
  row(158, 'D', '9.6', 'tasks/resubscribe begins with the task, and of one that has ended gives just that', 'old'),
  row(159, 'D', '9.1', 'The four methods of push notifications are there, and refused as not supported', 'old'),
  row(160, 'D', '9.1', 'agent/getAuthenticatedExtendedCard gives the extended card to authenticated callers', 'old'),
  row(161, 'D', '9.1', 'REST is below /v1, in the JSON of the proto of 0.3', 'old'),
  row(162, 'D', '9.2', 'Extensions are asked for, and named when active, in X-A2A-Extensions', 'old'),
  row(163, 'D', '9.2', 'What is pushed is the object itself', 'old'),
  row(
    164,
    'D',
    '9.5',
    'The card of 0.3 is at its old place, at the new one for clients that name the version, and there with that of 1.0 for those that name none',
    'old'
  ),
  row(165, 'D', '9.6', 'One task is seen, followed and answered in 0.3 and in 1.0', 'old'),
  row(
    166,
    'D',
    '9.1, 11.1',
    'A body of another Content-Type gets HTTP 415; a part of a media type that is not accepted gets its own error',
    'open'
  ),
  row(
    167,
    'D',
    '9.3',
    'A message without kind, with files as name, mediaType and fileWithBytes, is answered in that form',
    'old'
  ),
  row(
    168,
    'D',
    '3.2.1, 3.2.2',
    'Metadata and configuration of a request reach the work, those of an answer too',
    'inside'
  ),
  row(
    169,
    'D',
    '9.3',
    'An answer without a task is one in input-required if the agent has work, else completed',
    'old'
  ),
  row(170, 'D', '9.3', 'Under one id and session of 0.1 the history and the artifacts go on over the rounds', 'old'),
  row(
    171,
    'D',
    '5.2, 13.3',
    'Cards list every binding that one server has, on any of its ports, and the extended card lists the same',
    'open'
  ),
  row(
    172,
    'D',
    '5.1',
    'One server has every binding: a task opened here is read over gRPC, and the other way round',
    'open'
  ),
  row(
    173,
    'D',
    '8.6.1',
    'Beside servers that are not of taskchart the card is served with the same caching headers',
    'open'
  ),
  row(
    174,
    'D',
    '9.1',
    'A client calls an agent that knows nothing newer than 0.3, by the interfaces of its card',
    'client'
  ),
  row(
    175,
    'D',
    '3.4.3',
    'A question which artifact is meant is answered by its place in the list, its name without the extension, or a word of its description',
    'open'
  )
]

function row(id: number, level: Level, section: string, says: string, ...needs: Need[]): Requirement {
  return { id, level, section, says, needs }
}
