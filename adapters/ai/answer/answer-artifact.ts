import { isDeepStrictEqual } from 'node:util'
import type { Part } from '../../../machines/protocol/parts.ts'
import { artifact } from '../../../runtime/authoring/words.ts'
import type { WorkStepArguments, WorkArguments } from '../../../runtime/authoring/work-arguments.ts'
import { addTo, merged } from '../parts.ts'
import type { AnswerArtifactOptions } from './answer-options.ts'
import { AnswerStream, type SaidOfAnswer } from './answer-stream.ts'

/** Between what a model says in one call and in the next. */
const BREAK = '\n\n'

/**
 * The artifact in which an answer comes, over all calls of the model. The words of a call belong to its step: they are not
 * said again once it has its result. After a restart the artifact goes on if the client has what the calls before have
 * said; if it has more, of a call that did not come to its end, the artifact is begun again.
 */
export class AnswerArtifact {
  readonly #work: Pick<WorkArguments, 'readTask'>
  readonly #about: Required<AnswerArtifactOptions>
  /** What the calls so far have said. */
  readonly #said: Part[] = []
  #chunks = 0
  /** What the client has; not known before the first call of a run. */
  #there: 'nothing' | 'this' | 'another' | undefined

  constructor(work: Pick<WorkArguments, 'readTask'>, { artifactId = 'answer', name = artifactId }: AnswerArtifactOptions) {
    this.#work = work
    this.#about = { artifactId, name }
  }

  /** Takes in what a call has said, in this run or in one before. */
  add({ parts, chunks }: SaidOfAnswer): void {
    for (const part of parts) addTo(this.#said, part)
    this.#chunks += chunks
  }

  /** Begins a call. What it says goes into the artifact; `add` is called when it has said all. */
  async stream({ emit, signal }: Pick<WorkStepArguments, 'emit' | 'signal'>): Promise<AnswerStream> {
    this.#there ??= await this.#onTask()
    const lead = this.#said.length > 0 ? BREAK : ''
    return new AnswerStream({ lead, chunksBefore: this.#chunks, say: (parts, isLast) => this.#say(parts, isLast, emit), signal })
  }

  #say(parts: Part[], isLast: boolean, emit: WorkStepArguments['emit']): void {
    const append = this.#there === 'this'
    if (parts.length === 0 && !(isLast && this.#there === 'another')) return
    const content = append ? { artifactId: this.#about.artifactId, parts } : { ...this.#about, parts: this.#begun(parts) }
    emit(artifact(content, { append, lastChunk: isLast }))
    this.#there = 'this'
  }

  #begun(parts: readonly Part[]): Part[] {
    const all = merged([...this.#said, ...parts])
    // An artifact cannot be taken back, nor be without parts.
    return all.length > 0 ? all : [{ text: '' }]
  }

  async #onTask(): Promise<'nothing' | 'this' | 'another'> {
    const { artifacts = [] } = await this.#work.readTask()
    const there = artifacts.find(({ artifactId }) => artifactId === this.#about.artifactId)
    if (!there) return 'nothing'
    return this.#said.length > 0 && isDeepStrictEqual(merged(there.parts), this.#said) ? 'this' : 'another'
  }
}
