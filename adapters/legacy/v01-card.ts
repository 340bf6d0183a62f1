import type { AgentCard } from '../../machines/protocol/card.ts'
import type { SecurityScheme } from '../../machines/protocol/security.ts'
import { normaliseVersion } from '../../machines/protocol/versions.ts'

/** A card (§4.4.1) in the form of 0.1: with one address, that of JSON-RPC if there is one, and the names of its ways to authenticate. */
export function card01({ name, description, supportedInterfaces, provider, version, documentationUrl, capabilities, defaultInputModes, defaultOutputModes, skills, securitySchemes }: AgentCard): object {
  const own = supportedInterfaces.filter(({ protocolVersion }) => normaliseVersion(protocolVersion) === '0.1')
  const interfaces = own.length > 0 ? own : supportedInterfaces
  const main = interfaces.find(({ protocolBinding }) => protocolBinding === 'JSONRPC') ?? interfaces[0]
  const { streaming = false, pushNotifications = false } = capabilities
  return {
    name,
    description,
    ...(main && { url: main.url }),
    ...(provider && { provider }),
    version,
    ...(documentationUrl !== undefined && { documentationUrl }),
    capabilities: { streaming, pushNotifications, stateTransitionHistory: false },
    ...(securitySchemes && { authentication: { schemes: [...new Set(Object.values(securitySchemes).map(schemeName))] } }),
    defaultInputModes,
    defaultOutputModes,
    skills: skills.map(({ id, name, description, tags, examples, inputModes, outputModes }) => ({
      id, name, description, tags, ...(examples && { examples }), ...(inputModes && { inputModes }), ...(outputModes && { outputModes })
    }))
  }
}

/** A way to authenticate by its name in OpenAPI, which 0.1 goes by; those of HTTP by their scheme. */
function schemeName(scheme: SecurityScheme): string {
  if ('apiKeySecurityScheme' in scheme) return 'apiKey'
  if ('httpAuthSecurityScheme' in scheme) return scheme.httpAuthSecurityScheme.scheme
  if ('openIdConnectSecurityScheme' in scheme) return 'openIdConnect'
  return 'mtlsSecurityScheme' in scheme ? 'mutualTLS' : 'oauth2'
}
