import { RELIABILITY_EXTENSION } from '../../machines/protocol/uris.ts'
import { LinkWatch } from './link-state.ts'

/** The way to an agent, as far as it is known from the requests that went it. */
export class Way {
  readonly url: string
  readonly link = new LinkWatch('open')
  #isReliable: boolean
  #hasAnswered = false

  /** `isReliable`: the agent's card says that it has the reliability extension. */
  constructor(url: string, isReliable: boolean) {
    this.url = url
    this.#isReliable = isReliable
  }

  /** Whether the agent has the reliability extension, by its card or by an answer. */
  get isReliable(): boolean {
    return this.#isReliable
  }

  /** Whether the agent ever answered. */
  get hasAnswered(): boolean {
    return this.#hasAnswered
  }

  /** The agent answers; `extensions` are those that are active, as `A2A-Extensions` lists them. */
  answered(extensions?: string | null): void {
    this.#hasAnswered = true
    this.#isReliable ||= extensions?.split(',').some(uri => uri.trim() === RELIABILITY_EXTENSION) ?? false
    if (this.link.state !== 'closed' && this.link.state !== 'open') this.link.enter('open')
  }

  /** A request was cut off. */
  lost(): void {
    if (this.link.state !== 'closed' && this.link.state !== 'lost') this.link.enter('lost')
  }

  /** What was cut off is tried again. */
  tried(): void {
    if (this.link.state === 'lost') this.link.enter('connecting')
  }
}
