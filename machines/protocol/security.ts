import type * as z from 'zod'
import { map, filled, optionalFlag, optionalList, optionalMap, optionalText, required } from './codec/fields.ts'
import { message, oneOf } from './codec/message.ts'
import { nonEmptyText, text } from './codec/values.ts'

/** A list of strings as the proto has it, wrapped in an object. */
export const StringListSchema = message({ list: optionalList(text) })

/** Security schemes that are all required, each with its scopes (§4.5). */
export const SecurityRequirementSchema = message({ schemes: optionalMap(StringListSchema) })

/** Security schemes that are all required, each with its scopes; a list of these means any one of them (§4.5). */
export interface SecurityRequirement extends z.output<typeof SecurityRequirementSchema> {}

/** An API key in the query, a header or a cookie (§4.5.2). */
export const APIKeySecuritySchemeSchema = message({
  description: optionalText,
  location: required(nonEmptyText),
  name: required(nonEmptyText)
})

/** An HTTP authentication scheme such as Bearer (§4.5.3). */
export const HTTPAuthSecuritySchemeSchema = message({
  description: optionalText,
  scheme: required(nonEmptyText),
  bearerFormat: optionalText
})

const scopes = filled(map(text), (): Record<string, string> => ({}))

/** OAuth 2.0's authorization code flow (§4.5.8). */
export const AuthorizationCodeOAuthFlowSchema = message({
  authorizationUrl: required(nonEmptyText),
  tokenUrl: required(nonEmptyText),
  refreshUrl: optionalText,
  scopes,
  pkceRequired: optionalFlag
})

/** OAuth 2.0's client credentials flow (§4.5.9). */
export const ClientCredentialsOAuthFlowSchema = message({
  tokenUrl: required(nonEmptyText),
  refreshUrl: optionalText,
  scopes
})

/** OAuth 2.0's implicit flow, which the spec deprecates. */
export const ImplicitOAuthFlowSchema = message({
  authorizationUrl: optionalText,
  refreshUrl: optionalText,
  scopes: optionalMap(text)
})

/** OAuth 2.0's password flow, which the spec deprecates. */
export const PasswordOAuthFlowSchema = message({
  tokenUrl: optionalText,
  refreshUrl: optionalText,
  scopes: optionalMap(text)
})

/** OAuth 2.0's device code flow (§4.5.10, RFC 8628). */
export const DeviceCodeOAuthFlowSchema = message({
  deviceAuthorizationUrl: required(nonEmptyText),
  tokenUrl: required(nonEmptyText),
  refreshUrl: optionalText,
  scopes
})

/** Which OAuth 2.0 flow is offered (§4.5.7): exactly one. */
export const OAuthFlowsSchema = oneOf(
  {
    authorizationCode: required(AuthorizationCodeOAuthFlowSchema),
    clientCredentials: required(ClientCredentialsOAuthFlowSchema),
    implicit: required(ImplicitOAuthFlowSchema),
    password: required(PasswordOAuthFlowSchema),
    deviceCode: required(DeviceCodeOAuthFlowSchema)
  },
  {}
)

/** Which OAuth 2.0 flow is offered (§4.5.7): exactly one. */
export type OAuthFlows = z.output<typeof OAuthFlowsSchema>

/** OAuth 2.0 (§4.5.4). */
export const OAuth2SecuritySchemeSchema = message({
  description: optionalText,
  flows: required(OAuthFlowsSchema),
  oauth2MetadataUrl: optionalText
})

/** OpenID Connect, by its discovery URL (§4.5.5). */
export const OpenIdConnectSecuritySchemeSchema = message({
  description: optionalText,
  openIdConnectUrl: required(nonEmptyText)
})

/** A client certificate (§4.5.6). */
export const MutualTlsSecuritySchemeSchema = message({ description: optionalText })

/** One way to authenticate callers (§4.5.1): exactly one of five. */
export const SecuritySchemeSchema = oneOf(
  {
    apiKeySecurityScheme: required(APIKeySecuritySchemeSchema),
    httpAuthSecurityScheme: required(HTTPAuthSecuritySchemeSchema),
    oauth2SecurityScheme: required(OAuth2SecuritySchemeSchema),
    openIdConnectSecurityScheme: required(OpenIdConnectSecuritySchemeSchema),
    mtlsSecurityScheme: required(MutualTlsSecuritySchemeSchema)
  },
  {}
)

/** One way to authenticate callers (§4.5.1): exactly one of five. */
export type SecurityScheme = z.output<typeof SecuritySchemeSchema>
