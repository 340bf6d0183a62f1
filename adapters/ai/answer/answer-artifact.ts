import { isDeepStrictEqual } from 'node:util'
import type { Part } from '../../../machines/protocol/parts.ts'
import { artifact } from '../../../runtime/authoring/words.ts'
import type { WorkStepArguments, WorkArguments } from '../../../runtime/authoring/work-arguments.ts'
import { addTo, merged } from '../model/model-parts.ts'
import type { AnswerArtifactOptions } from './answer-options.ts'
import { AnswerStream, type SaidOfAnswer } from './answer-stream.ts'

/** Separates the texts of two calls. */
const BREAK = '\n\n'

/**
 * The artifact of an answer, over all calls of the model. A completed call has its text in its step, and does not emit it again. After a
 * restart, the artifact is appended to if the client's copy equals the text of the completed calls. If the copy has more, from an
 * interrupted call, the artifact is replaced.
 */
export class AnswerArtifact {
  readonly #work: Pick<WorkArguments, 'readTask'>
  readonly #about: Required<AnswerArtifactOptions>
  /** The text of the completed calls. */
  readonly #said: Part[] = []
  #chunks = 0
  /** The artifact on the task, compared with `#said`; unknown before the first call of a run. */
  #there: 'nothing' | 'this' | 'another' | undefined

  constructor(
    work: Pick<WorkArguments, 'readTask'>,
    { artifactId = 'answer', name = artifactId }: AnswerArtifactOptions
  ) {
    this.#work = work
    this.#about = { artifactId, name }
  }

  /** Adds what a completed call said, in this run or an earlier one. */
  add({ parts, chunks }: SaidOfAnswer): void {
    for (const part of parts) addTo(this.#said, part)
    this.#chunks += chunks
  }

  /** Starts a call, whose output goes into the artifact. Call `add` when it is complete. */
  async stream({ emit, signal }: Pick<WorkStepArguments, 'emit' | 'signal'>): Promise<AnswerStream> {
    this.#there ??= await this.#onTask()
    const lead = this.#said.length > 0 ? BREAK : ''
    return new AnswerStream({
      lead,
      chunksBefore: this.#chunks,
      say: (parts, isLast) => this.#say(parts, isLast, emit),
      signal
    })
  }

  #say(parts: Part[], isLast: boolean, emit: WorkStepArguments['emit']): void {
    const append = this.#there === 'this'
    if (parts.length === 0 && !(isLast && this.#there === 'another')) return
    const content = append
      ? { artifactId: this.#about.artifactId, parts }
      : { ...this.#about, parts: this.#begun(parts) }
    emit(artifact(content, { append, lastChunk: isLast }))
    this.#there = 'this'
  }

  #begun(parts: readonly Part[]): Part[] {
    const all = merged([...this.#said, ...parts])
    // An artifact cannot be removed, and needs at least one part.
    return all.length > 0 ? all : [{ text: '' }]
  }

  async #onTask(): Promise<'nothing' | 'this' | 'another'> {
    const { artifacts = [] } = await this.#work.readTask()
    const there = artifacts.find(({ artifactId }) => artifactId === this.#about.artifactId)
    if (!there) return 'nothing'
    return this.#said.length > 0 && isDeepStrictEqual(merged(there.parts), this.#said) ? 'this' : 'another'
  }
}
