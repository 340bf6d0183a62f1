import {
  type AgentCapabilities,
  type AgentCard,
  type AgentInterface,
  type AgentSkill,
  decodeCard
} from '../../machines/protocol/card.ts'
import { createRuntime } from '../../runtime/index.ts'
import { servedRuntime } from '../../runtime/runtime-options.ts'
import { fetchCard, foundCard } from '../client/card/discovery.ts'
import { collectOddities } from '../client/warnings.ts'
import { interfacesAt } from '../entry/interfaces.ts'
import { OUTPUT_OPTIONS, readArguments, readOptions, readOutput, readPositionals, refusePassword } from './arguments.ts'
import { type Command, CommandError, EXIT, type Io, usageError } from './command.ts'
import { jsonIn, signerFrom, textIn, verifierFrom } from './key-files.ts'
import { loadAgent } from './load-agent.ts'
import {
  aboutKey,
  callOption,
  ENVIRONMENT_HELP,
  ACCESS_HELP,
  ACCESS_OPTIONS,
  CALL_OPTIONS,
  CALLER_OPTIONS,
  cardFailure,
  findAgent,
  readAccess,
  readPlaceOfAgent,
  withAgent,
  withinTimeout,
  type AgentPlace,
  type CallerAccess
} from './talk/agent-connection.ts'
import { sectionLines } from './text/format.ts'
import { jsonLine, oneLine, plain } from './text/terminal.ts'

/** `taskchart card`: shows an agent's card, or signs or verifies one. */
export const cardCommand: Command = {
  usage: [
    'taskchart card URL [--extended] [--validate] [--api-key KEY] [--header NAME:VALUE]… [-o json]',
    'taskchart card verify URL|CARD.json --keys KEYS',
    'taskchart card sign CARD.json|AGENT.ts|js [URL] --key FILE'
  ],
  words: ['verify', 'sign'],
  hasOutputForms: true,
  details: `URL is the URL of the card, of the agent's host, or of the agent. A card of A2A 0.3 is shown in the form of 1.0.

  --agent-card REF, -a REF
                  the agent, in place of URL: its URL, its host, or a file with its card
  --extended      the card that the agent shows to callers who authenticate, by GetExtendedAgentCard
  --validate      end with exit code 1, and with what is wrong, if the card lacks what A2A requires. Without it the client
                  reads what it can
  --output FORM, -o FORM
                  text (the default), or json: the card as one line. --json is the same
  --timeout TIME  the longest time of the command: 30s, 5m or 1h
${ACCESS_HELP}
A card is asked for without credentials first. After 401 or 403 it is asked for once more: with the headers, and with
the key as Authorization: Bearer if WWW-Authenticate names that, else as x-api-key. verify does the same.

${ENVIRONMENT_HELP}
verify checks that a trusted key signed the card, and that the card has not changed since. It ignores what the card itself
says about keys.

  --keys KEYS     the trusted public keys: a file with a JWK set, a JWK or PEM, or the https: URL of a JWK set
  --json          write one line of JSON, { name, kid, alg, left }; left lists members that are not signed

sign writes the card with one more signature to stdout. The card of a module needs the URL at which it is served. A served agent signs its card itself: taskchart serve AGENT
--card-key FILE.

  --key FILE      the private key, PEM or JWK: EC, RSA or Ed25519
  --kid ID        the key id. Default: the kid of the JWK, else the thumbprint of the key
  --alg ALG       the algorithm. Default: the alg of the JWK, else ES256, ES384, ES512, RS256 or EdDSA, according to the key
  --jku URL       the URL of the public keys, written into the signature

Both need the packages @a2a-js/sdk and jose.

Exit codes: 0 shown, signed or trusted; 1 not trusted, not valid, or an error; 2 wrong usage; 3 not reached; 4 credentials are missing, or were refused;
5 the time of --timeout has passed.
`,
  run: (args, io) => {
    const [first, ...others] = args
    if (first === 'sign') return signCard(others, io)
    if (first === 'verify') return verifyCard(others, io)
    // As a2a-cli has it.
    return show(first === 'get' ? others : args, io)
  }
}

const { 'agent-card': agentCard, endpoint, timeout } = CALL_OPTIONS
const SHOW_OPTIONS = {
  'agent-card': agentCard,
  endpoint,
  timeout,
  extended: { type: 'boolean' },
  validate: { type: 'boolean' },
  ...ACCESS_OPTIONS,
  ...OUTPUT_OPTIONS
} as const

async function show(args: readonly string[], io: Io): Promise<number> {
  const { values, positionals } = readOptions(args, SHOW_OPTIONS)
  const { place, rest } = readPlaceOfAgent(values, positionals, io.env)
  readPositionals(rest, [])
  const form = readOutput(values)
  const oddities = collectOddities()
  const card = await withinTimeout(values.timeout, io, io =>
    values.extended ? extendedCardOf(place, io) : publicCardOf(place, io)
  ).finally(() => oddities.stop())
  const [wrong] = values.validate ? oddities.take() : []
  if (wrong !== undefined)
    throw new CommandError(`The card at ${place.url} is not valid A2A: ${wrong}`, { code: 'A2ACLI_ERR_CARD_INVALID' })
  io.stdout.write(form === 'text' ? plain(readable(card)) : jsonLine(card))
  return EXIT.ok
}

async function publicCardOf(place: AgentPlace, { signal, cwd }: Io): Promise<AgentCard> {
  const { url, card } = await findAgent(place.url, cwd)
  return fetchCard(url, { signal, ...place.access, ...(card && { card }) }).catch(error => {
    throw cardFailure(error, place)
  })
}

function extendedCardOf(place: AgentPlace, io: Io): Promise<AgentCard> {
  return withAgent(place, io, async client =>
    client.getExtendedAgentCard({}, { signal: io.signal }).catch(error => {
      throw cardFailure(error, place)
    })
  )
}

function readable({ name, version, description, supportedInterfaces, capabilities, skills }: AgentCard): string {
  return [
    `${oneLine(name)} ${oneLine(version)}`,
    ...(description === '' ? [] : [description]),
    ...sectionLines('Interfaces', supportedInterfaces.map(interfaceLine)),
    ...sectionLines('Capabilities', capabilityLines(capabilities)),
    ...sectionLines('Skills', skills.flatMap(skillLines)),
    ''
  ].join('\n')
}

function interfaceLine({ url, protocolBinding, protocolVersion }: AgentInterface): string {
  return oneLine(`${url}  A2A ${protocolVersion}, ${protocolBinding}`)
}

function capabilityLines({
  streaming,
  pushNotifications,
  extendedAgentCard,
  extensions = []
}: AgentCapabilities): string[] {
  return [
    ...(streaming ? ['streaming'] : []),
    ...(pushNotifications ? ['push notifications'] : []),
    ...(extendedAgentCard ? ['extended card'] : []),
    ...extensions.map(({ uri, required }) => oneLine(`extension ${uri}${required ? ' (required)' : ''}`))
  ]
}

function skillLines({ name, description, examples = [] }: AgentSkill): string[] {
  const about = description === '' ? name : `${name}: ${description}`
  return [oneLine(about), ...examples.map(example => `  "${oneLine(example)}"`)]
}

/** `taskchart card verify`: verifies the signatures of a card against trusted keys. */
async function verifyCard(args: readonly string[], { stdout, signal, cwd, env }: Io): Promise<number> {
  const {
    values,
    positionals: [place]
  } = readArguments(args, { keys: { type: 'string' }, json: { type: 'boolean' }, ...CALLER_OPTIONS }, ['URL|CARD.json'])
  const { keys, json } = values
  if (keys === undefined) throw usageError('--keys is missing: the file or URL of the trusted public keys.')
  refusePassword(place)
  const isRemote = /^(?:http|ws)s?:/i.test(place)
  const option = callOption(values)
  if (option !== undefined && !isRemote) throw usageError(`${option} is for a URL.`)
  const verify = await verifierFrom(keys, cwd)
  const found = isRemote
    ? await remoteCard(place, readAccess(values, env), signal)
    : jsonIn(await textIn(place, cwd), place)
  const {
    card: { name },
    kid,
    alg,
    left
  } = await verify(found, place)
  const but = left.length > 0 ? `, but for ${left.join(' and ')}` : ''
  stdout.write(
    json
      ? jsonLine({ name, kid, alg, left })
      : `${oneLine(`The card of ${name} can be trusted: the key ${JSON.stringify(kid)} (${alg}) has signed it${but}.`)}\n`
  )
  return EXIT.ok
}

async function remoteCard(url: string, access: CallerAccess, signal: AbortSignal): Promise<unknown> {
  return foundCard(url, { signal, ...access }).catch(error => {
    throw aboutKey(error, { url, access })
  })
}

const SIGN_OPTIONS = {
  key: { type: 'string' },
  kid: { type: 'string' },
  alg: { type: 'string' },
  jku: { type: 'string' }
} as const

/** `taskchart card sign`: adds a signature to a card. */
async function signCard(args: readonly string[], { stdout, cwd }: Io): Promise<number> {
  const {
    values: { key, ...options },
    positionals
  } = readOptions(args, SIGN_OPTIONS)
  const [file, url] = positionals.length === 2 ? positionals : readPositionals(positionals, ['CARD.json|AGENT.ts|js'])
  if (key === undefined) throw usageError('--key is missing: the file with the private key, PEM or JWK.')
  const sign = await signerFrom(key, cwd, options)
  const card = file.endsWith('.json') ? await cardIn(file, cwd, url) : await cardOf(file, cwd, url)
  stdout.write(`${JSON.stringify(await sign(card), undefined, 2)}\n`)
  return EXIT.ok
}

async function cardIn(file: string, cwd: string, url: string | undefined): Promise<AgentCard> {
  if (url !== undefined) throw usageError('URL is for an agent module. A card file already contains its URLs.')
  return decodeCard(jsonIn(await textIn(file, cwd), file), file)
}

/** The card that `taskchart serve` would serve for this module at this URL. */
async function cardOf(file: string, cwd: string, url: string | undefined): Promise<AgentCard> {
  if (url === undefined || !URL.canParse(url) || !/^(?:http|ws)s?:/.test(url))
    throw usageError('URL is missing: the one at which the agent is served, such as https://agent.example/.')
  const { agent, authenticate } = await loadAgent(file, cwd)
  const runtime = servedRuntime(createRuntime({ agent, ...(authenticate && { authenticate }) }), 'card')
  try {
    return runtime.agentCard(
      interfacesAt(url, { webSocket: true, http: true, dialects: [] }, runtime.settings.versions)
    )
  } finally {
    await runtime.close()
  }
}
