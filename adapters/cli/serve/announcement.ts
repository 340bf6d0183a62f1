import type { AgentInterface } from '../../../machines/protocol/card.ts'
import { AGENT_CARD_PATH } from '../../../machines/protocol/uris.ts'
import type { Agent } from '../../../runtime/agent/define-agent.ts'
import { withScheme } from '../../entry/interfaces.ts'
import { sendLine } from '../text/paste-lines.ts'
import { oneLine } from '../text/terminal-text.ts'

/** The URLs of a served agent. */
export interface Places {
  readonly name: string
  /** The WebSocket URL. */
  readonly url: string
  readonly http: string
  readonly card: string
  /** The page for people. */
  readonly page: string
  /** The gRPC address, `host:port`. */
  readonly grpc?: string
  /** The id of the process that serves it. */
  readonly pid: number
  /** The URL of the metrics, if they are served. */
  readonly metrics?: string
}

/** The URLs of an agent that is served at an `http:` URL with these interfaces. */
export function placesOf({ card }: Agent, http: string, interfaces: readonly AgentInterface[], page = http): Places {
  const grpc = interfaces.find(({ protocolBinding }) => protocolBinding === 'GRPC')?.url
  return {
    name: card.name,
    url: withScheme(http, 'ws'),
    http,
    card: new URL(AGENT_CARD_PATH, http).href,
    page,
    pid: process.pid,
    ...(grpc !== undefined && { grpc })
  }
}

/** The output of `serve` on a terminal: the agent's URLs, a command line to paste, and how to stop it. */
export function announcement(
  { card }: Agent,
  { url, http, card: cardUrl, page, pid, grpc, metrics }: Places,
  needsKey: boolean,
  end = ''
): string {
  const text = card.skills.flatMap(({ examples = [] }) => examples)[0] ?? 'hello'
  return `${[card.name, ...(card.description === '' ? [] : [card.description])].map(oneLine).join(': ')}

  agent  ${url}
         ${http} for JSON-RPC and REST${grpc === undefined ? '' : `\n         ${grpc} for gRPC`}
  card   ${cardUrl}
  page   ${page}${metrics === undefined ? '' : `\n         ${metrics} for Prometheus`}

Talk to it from another terminal:

  ${sendLine({ url: reachable(url), text, out: 'artifacts', needsKey })}

${end}Ctrl-C stops it. Its process id is ${pid}.
`
}

/** The URL by which this machine reaches a server that listens on all addresses. */
function reachable(url: string): string {
  return url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:')
}
