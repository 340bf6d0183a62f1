/** What a requirement takes to be tried, and why it was not tried where that is not there. */
export const NEEDS = {
  answer: 'no message of these was answered with a task or a message',
  task: 'no message of these was answered with a task',
  reply: 'no message of these was answered with a message alone',
  ended: 'no task came to its end',
  stopped: 'no task came to its end, or asked, while SendMessage waited',
  live: 'no task was met before its end: give a --text whose work takes a while',
  asked: 'no task asked for input: give a --text that makes one ask',
  auth: 'no task asked for an authorization: give a --text that makes one ask',
  immediate: 'the tasks were too quick to tell: give a --text whose work takes a while',
  history: 'no history had the message that was sent, which A2A allows',
  listed: 'no task was there to be listed',
  times: 'nothing that was heard had a timestamp',
  bytes: 'nothing that was heard had bytes',
  streaming: 'the card says streaming is not supported',
  push: 'the card says push notifications are not supported',
  webhookTaken: 'the server did not take a webhook at webhook.invalid',
  noPush: 'the card says push notifications are supported',
  extended: 'the card says there is no extended card',
  noExtended: 'the card says there is an extended card',
  requiredExtension: 'the card requires no extension',
  extension: 'the card lists no extension',
  modes: 'the card takes every media type',
  credentials: 'the card wants no credentials',
  one: 'the card offers A2A 0.3 at the same address',
  signature: 'signatures of cards are not checked',
  others: 'the card offers no other binding that was tested',
  json: 'this binding carries no JSON',
  key: 'no --api-key was given',
  rpc: 'this binding has no JSON-RPC envelope',
  rpcOverHttp: 'this binding is not JSON-RPC over HTTP',
  rest: 'this binding is not REST',
  grpc: 'this binding is not gRPC',
  websocket: 'this binding is not a WebSocket',
  caseOfNames: 'HTTP itself does not count the case of names',
  open: 'A2A leaves it open',
  client: 'it is about clients',
  inside: 'it cannot be seen from outside',
  callers: 'it takes two callers with credentials of their own',
  webhook: 'it takes a web server that the agent can reach',
  untried: 'it is not tried yet',
  outOfBand: 'it takes an authorization, which comes out of band',
  old: 'only A2A 1.0 is tested'
} as const

/** Something that a requirement takes to be tried. */
export type Need = keyof typeof NEEDS

/** Why a requirement was not tried although everything was there: something before it went wrong, or the test came to its bounds. */
export const NOT_REACHED = 'what it takes did not come about: see what failed, or the bounds of the test'
