import type { Artifact } from '../machines/protocol/objects.ts'
import { appended } from './appended.ts'

/** Up to how many artifacts are looked through; of more there is an index. */
const FEW = 8

/** The artifacts of a task by their ids, in the order in which they first came. Most tasks have one: a Map for it would take as much memory as all else of the task. */
export class ArtifactList {
  #list: Artifact[] = []
  #places: Map<string, number> | undefined

  get(artifactId: string): Artifact | undefined {
    return this.#list[this.#placeOf(artifactId)]
  }

  /** Puts an artifact in the place of that with its id, or at the end. */
  set(artifact: Artifact): void {
    const place = this.#placeOf(artifact.artifactId)
    if (place >= 0) {
      this.#list[place] = artifact
      return
    }
    this.#places?.set(artifact.artifactId, this.#list.length)
    this.#list = appended(this.#list, artifact)
  }

  [Symbol.iterator](): Iterator<Artifact> {
    return this.#list.values()
  }

  #placeOf(artifactId: string): number {
    if (this.#list.length <= FEW) return this.#list.findIndex(artifact => artifact.artifactId === artifactId)
    this.#places ??= new Map(this.#list.map((artifact, place) => [artifact.artifactId, place]))
    return this.#places.get(artifactId) ?? -1
  }
}
