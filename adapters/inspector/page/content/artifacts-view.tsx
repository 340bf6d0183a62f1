import { useMemo } from 'preact/hooks'
import type { Artifact } from '../../../../machines/protocol/objects.ts'
import { shortId } from '../frame/wording.ts'
import { PartsView } from './parts-view.tsx'

/** The artifacts of a task. */
export function ArtifactsView({ artifacts }: { readonly artifacts: readonly Artifact[] }) {
  return <>{artifacts.map(artifact => <ArtifactView key={artifact.artifactId} artifact={artifact} />)}</>
}

function ArtifactView({ artifact: { artifactId, name, description, parts } }: { readonly artifact: Artifact }) {
  const shown = useMemo(() => <PartsView parts={parts} />, [parts])
  return (
    <article class="artifact">
      <header>
        <b>{name || 'artifact'}</b>
        <span class="quiet mono" title={`Artifact ${artifactId}`}>{shortId(artifactId)}</span>
      </header>
      {description && <p class="quiet">{description}</p>}
      {shown}
    </article>
  )
}
