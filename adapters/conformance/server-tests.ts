import { isDeepStrictEqual } from 'node:util'
import { tryDecode } from '../../machines/protocol/codec/decode.ts'
import { A2AError } from '../../machines/protocol/errors.ts'
import { TaskSchema } from '../../machines/protocol/objects.ts'
import { isTerminal } from '../../machines/protocol/states.ts'
import { normaliseVersion, PROTOCOL_VERSION } from '../../machines/protocol/versions.ts'
import { type Clock, systemClock } from '../../runtime/ports/clock.ts'
import { type Binding, bindingNamed, readBindings } from '../client/card/bindings.ts'
import { checkAccess, explainRefusal, placesIn } from '../client/credentials.ts'
import { httpAddress, isSocketAddress, mayReceive, cardUrlRefusal } from '../client/hosts.ts'
import { missingSupport, onlyOlder } from '../client/open-by-card.ts'
import { OPENERS } from '../client/openers.ts'
import { type ConnectOptions, hasHeaders, type PlacedOptions } from '../client/options.ts'
import { BindingTest } from './binding-test.ts'
import {
  BoundReached,
  type TestBounds,
  type WireCaller,
  ignoreBound,
  ignoreUnanswered,
  type Note,
  type WireParameters,
  Unanswered
} from './callers/caller.ts'
import { Exploration } from './explore.ts'
import { cardAt, type FoundCard, noteCard } from './requirements/card.ts'
import { Ledger, type RequirementResult } from './requirements/ledger.ts'
import {
  type Need,
  type TestedInterface,
  type TestedCard,
  offeredIn,
  outcomeText,
  actualErrorText
} from './requirements/needs.ts'
import { REQUIREMENTS } from './requirements/requirements.ts'

/** The options for the test of a server. */
export interface ServerTestOptions extends Pick<ConnectOptions, 'headers' | 'credentials' | 'credentialOrigins'> {
  /** The messages to its agent. Default: the examples of the card's skills, or `hello`. */
  readonly texts?: readonly string[]
  /** The bindings to test. Default: all in the card; for a ws: URL the WebSocket. */
  readonly bindings?: readonly string[]
  readonly bounds?: Partial<TestBounds>
  readonly clock?: Clock
  readonly signal?: AbortSignal
  /** Called with each move. */
  readonly onMove?: (binding: Binding, what: string) => void
  /** Called with each violation as it is found, with this finding alone. */
  readonly missed?: (binding: Binding, verdict: RequirementResult) => void
}

/** The results on one binding. */
export interface Column {
  readonly binding: Binding
  readonly url: string
  /** One per requirement, in order. */
  readonly verdicts: readonly RequirementResult[]
}

/** The results for a server. */
export interface ServerTest {
  readonly columns: readonly Column[]
  /** Further lines: untested interfaces, refused messages, reached bounds. */
  readonly notes: readonly string[]
}

const BOUNDS: TestBounds = { answerMs: 10_000, requests: 500, tasks: 80, totalMs: 300_000 }

/** The maximum number of a card's examples that are sent. */
const MOST_TEXTS = 5

/**
 * Tests any A2A server over every binding that its card offers, without knowledge of its agent. Throws TypeError for an
 * invalid URL or binding. Throws A2AError as `connect` does: if the server is unreachable, has no card or no interface
 * of A2A 1.0, and Unauthenticated if it requires credentials.
 */
export async function testServer(url: string, options: ServerTestOptions = {}): Promise<ServerTest> {
  const {
    clock = systemClock,
    signal = new AbortController().signal,
    onMove = () => {},
    missed = () => {},
    texts
  } = options
  const wanted = readBindings(options.bindings) ?? (isSocketAddress(url) ? ['WEBSOCKET'] : undefined)
  const bounds = { ...BOUNDS, ...options.bounds }
  checkAccess(options)
  const found = await cardInTime(url, options, bounds, clock, signal)
  const card = offeredIn(found.card)
  const { offers, notes } = offersIn(card, url, wanted)
  const usedTexts = texts ?? (card.examples.length === 0 ? ['hello'] : card.examples.slice(0, MOST_TEXTS))
  const trials: BindingTest[] = []
  const columns: Column[] = []
  for (const offer of offers) {
    const ledger = new Ledger(factsOf(card, offer.binding), verdict => missed(offer.binding, verdict))
    noteCard(found, ledger, offer.binding)
    const access = accessTo(offer, url, card, options)
    const open = await callerFor(offer, { requestedUrl: url, access, extensions: card.requiredExtensions })
    if (typeof open === 'string') {
      columns.push({
        ...offer,
        verdicts: REQUIREMENTS.map(requirement => ({ requirement, outcome: 'skipped', findings: [], reason: open }))
      })
      continue
    }
    const trial = new BindingTest({
      ...offer,
      card,
      texts: usedTexts,
      ledger,
      clock,
      bounds,
      signal,
      open,
      isKnown: access.places.length > 0 || hasHeaders(access)
    })
    const exploration = new Exploration(trial, what => onMove(offer.binding, what))
    trials.push(trial)
    if (await isThere(trial, access)) await exploration.run()
    await exploration.cleanUp()
  }
  await compare(trials).catch(ignoreBound)
  for (const trial of trials) {
    const { binding, refusals, reached } = trial
    trial.close()
    notes.push(
      ...[...refusals].map(text => `${binding}: a message was refused: ${text}`),
      ...(reached === undefined ? [] : [`${binding}: ended at a bound: ${reached}`])
    )
  }
  const tested = trials.map(({ options: { binding, url, ledger } }) => ({ binding, url, verdicts: ledger.verdicts() }))
  return { columns: [...tested, ...columns], notes }
}

async function cardInTime(
  url: string,
  access: ServerTestOptions,
  { answerMs }: TestBounds,
  clock: Clock,
  signal: AbortSignal
): Promise<FoundCard> {
  const late = new AbortController()
  const timer = clock.setTimeout(() => late.abort(), answerMs)
  try {
    return await cardAt(url, access, AbortSignal.any([signal, late.signal]))
  } finally {
    clock.clearTimeout(timer)
  }
}

/** The identity that an interface gets: credentials where the card wants them, if they may go there. */
function accessTo(
  { url }: TestedInterface,
  requestedUrl: string,
  { security }: TestedCard,
  { headers, credentials, credentialOrigins }: ServerTestOptions
): ServerTestParts['access'] {
  const given = {
    ...(headers && { headers }),
    ...(credentials && { credentials }),
    ...(credentialOrigins && { credentialOrigins })
  }
  return { ...given, places: mayReceive(requestedUrl, url, given) ? placesIn(security, credentials) : [] }
}

function offersIn(
  card: TestedCard,
  url: string,
  wanted?: readonly Binding[]
): { offers: TestedInterface[]; notes: string[] } {
  const { interfaces } = card
  const isCurrent = (version: string) => normaliseVersion(version) === PROTOCOL_VERSION
  if (interfaces.length === 0)
    throw new A2AError(
      'InvalidAgentResponse',
      `The card at ${url} lists no interface that could be tested. If it is an agent card, it has to have supportedInterfaces.`
    )
  if (!interfaces.some(({ protocolVersion }) => isCurrent(protocolVersion)))
    throw onlyOlder(url, [...new Set(interfaces.map(({ protocolVersion }) => protocolVersion))].join(', '), [
      PROTOCOL_VERSION
    ])
  const offers: TestedInterface[] = []
  const notes: string[] = []
  for (const { url: address, protocolBinding, protocolVersion, tenant = '' } of interfaces) {
    const binding = bindingNamed(protocolBinding)
    const name = `${protocolBinding} ${protocolVersion} at ${address}`
    if (!isCurrent(protocolVersion)) notes.push(`${name} is not tested: only A2A ${PROTOCOL_VERSION} is.`)
    else if (!binding) notes.push(`${name} is not tested: taskchart does not speak it.`)
    else if (offers.some(offer => offer.binding === binding))
      notes.push(`${name} is not tested: the first interface of its binding is.`)
    else if (wanted?.includes(binding) ?? true) {
      const isOnly10 = interfaces.every(other => isCurrent(other.protocolVersion) || other.url !== address)
      offers.push({ binding, url: address, tenant: tenant === '' ? undefined : tenant, isOnly10 })
    }
  }
  if (offers.length === 0)
    throw new A2AError(
      'UnsupportedOperation',
      `The agent at ${url} offers no ${(wanted ?? ['binding that could be tested']).join(' or ')}, only ${interfaces.map(({ protocolBinding }) => protocolBinding).join(', ')}.`
    )
  return { offers, notes }
}

function factsOf(card: TestedCard, binding: Binding): Need[] {
  const ofBinding: Readonly<Record<Binding, readonly Need[]>> = {
    WEBSOCKET: ['json', 'rpc', 'websocket'],
    JSONRPC: ['json', 'rpc', 'rpcOverHttp'],
    'HTTP+JSON': ['json', 'rest'],
    GRPC: ['grpc']
  }
  return [
    ...ofBinding[binding],
    ...(card.streaming ? ['streaming' as const] : []),
    card.pushNotifications ? 'push' : 'noPush',
    card.extendedAgentCard ? 'extended' : 'noExtended'
  ]
}

/** Whether the server answers over the binding (§5.2). Throws if it requires credentials. */
async function isThere(trial: BindingTest, access: PlacedOptions): Promise<boolean> {
  try {
    const outcome = await trial.ask([118], 'ListTasks', { pageSize: 1 })
    if (
      'refusal' in outcome &&
      (outcome.refusal.code === 'Unauthenticated' || /^(?:401|UNAUTHENTICATED)/.test(outcome.refusal.native))
    ) {
      throw explainRefusal(new A2AError('Unauthenticated', actualErrorText(outcome.refusal)), access)
    }
    trial.check(118, true, '', undefined)
    return true
  } catch (error) {
    if (error instanceof BoundReached || error instanceof Unanswered) return false
    throw error
  }
}

/** Checks that all bindings serve the same agent: tasks are visible over every binding, and errors are equal (§5.1). */
async function compare(trials: readonly BindingTest[]): Promise<void> {
  if (trials.length < 2) return
  const unknown = crypto.randomUUID()
  for (const trial of trials) {
    trial.options.ledger.learn('others')
    const ended = [...trial.tasks.values()].find(({ status: { state } }) => isTerminal(state))
    for (const other of trials) {
      if (other === trial) continue
      await compared(trial, other, ended?.id, unknown).catch(ignoreUnanswered)
    }
  }
}

async function compared(
  trial: BindingTest,
  other: BindingTest,
  id: string | undefined,
  unknown: string
): Promise<void> {
  const [here, there] = [
    await trial.ask([130], 'GetTask', { id: unknown }),
    await other.ask([], 'GetTask', { id: unknown })
  ]
  if ('refusal' in here && 'refusal' in there)
    trial.check(
      130,
      here.refusal.code === there.refusal.code,
      `what ${other.binding} refuses with: ${actualErrorText(there.refusal)}`,
      actualErrorText(here.refusal)
    )
  if (id === undefined) return
  const [own, foreign] = [await trial.result([129], 'GetTask', { id }), await other.ask([], 'GetTask', { id })]
  trial.check(
    129,
    'result' in foreign && isDeepStrictEqual(canonical(own), canonical(foreign.result)),
    `the task over ${other.binding} too: ${JSON.stringify(own)}`,
    outcomeText(foreign)
  )
}

/** Restores members that a binding omits for their default values. */
function canonical(task: unknown): unknown {
  return tryDecode(TaskSchema, task).value ?? task
}

/** The parameters of every call in a test: the URL, what identifies the caller, and the required extensions. */
export interface ServerTestParts {
  readonly requestedUrl: string
  readonly access: Required<Pick<PlacedOptions, 'places'>> & ConnectOptions
  readonly extensions: readonly string[]
}

type Make = (url: string, usual: WireParameters, note: Note) => WireCaller

type Loaders = Readonly<Record<Binding, () => Promise<Make>>>

/** Each is loaded on demand. */
const CALLERS: Loaders = {
  WEBSOCKET: async () => (await import('./callers/websocket-caller.ts')).webSocketCaller,
  JSONRPC: async () => {
    const { jsonRpcCaller } = await import('./callers/http-callers.ts')
    return (url, ...given) => jsonRpcCaller(httpAddress(url), ...given)
  },
  'HTTP+JSON': async () => {
    const { restCaller } = await import('./callers/http-callers.ts')
    return (url, ...given) => restCaller(httpAddress(url).replace(/\/$/, ''), ...given)
  },
  GRPC: async () => (await import('./callers/grpc-caller.ts')).grpcCaller
}

/**
 * A function that opens a caller of an interface, or the reason why there is none. Credentials are sent only where
 * `connect` sends them.
 */
export async function callerFor(
  { binding, url }: { binding: Binding; url: string },
  { requestedUrl, access, extensions }: ServerTestParts,
  callers = CALLERS
): Promise<((note: Note) => WireCaller) | string> {
  try {
    const refusal =
      cardUrlRefusal(requestedUrl, url, access) ??
      missingSupport(requestedUrl, binding, OPENERS['1.0'][binding]?.lacks, access)
    if (refusal) throw refusal
    const make = await callers[binding]()
    const usual: WireParameters = { version: PROTOCOL_VERSION, extensions, access }
    return note => make(url, usual, note)
  } catch (error) {
    const { code, message } = error as Error & { code?: unknown }
    return code === 'ERR_MODULE_NOT_FOUND' ? `a package is missing: npm install ${PEERS}` : message
  }
}

/** The optional peers for gRPC. */
const PEERS = '@a2a-js/sdk @grpc/grpc-js @bufbuild/protobuf'
