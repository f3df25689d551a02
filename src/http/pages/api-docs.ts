// The API reference as a page: Swagger UI, every file of it from this server, so it works without the internet.
import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'

/** Swagger UI sets style attributes and inlines its icons; scripts are files of ours and nothing else. */
const contentSecurityPolicy = (apiOrigin: string) =>
  [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    `connect-src 'self' ${apiOrigin}`.trim(),
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')

/** `baseUrl`: where the document says that the API is, if it says so, for the page to be allowed to call it. */
export async function registerApiDocs(
  server: FastifyInstance,
  document: object,
  baseUrl?: string,
): Promise<void> {
  const { origin, pathname } = baseUrl ? new URL(`${baseUrl}/`) : { origin: '', pathname: '/' }
  await server.register(swagger, {
    mode: 'static',
    specification: { document: document as never },
  })
  await server.register(swaggerUi, {
    routePrefix: '/docs',
    // What a proxy in front takes off the path.
    indexPrefix: pathname.replace(/\/$/, ''),
    staticCSP: contentSecurityPolicy(origin),
    logo: { type: 'image/svg+xml', content: Buffer.from(LOGO), href: `${pathname}docs`, target: '_self' },
    theme: { title: 'Adit API', css: [{ filename: 'adit.css', content: STYLE }] },
    uiConfig: { deepLinking: true, tryItOutEnabled: true, persistAuthorization: false, docExpansion: 'list' },
  })
}

const LOGO = `<svg xmlns="http://www.w3.org/2000/svg" width="96" height="32" viewBox="0 0 96 32">
<path d="M4 28V16a12 12 0 0 1 24 0v12h-7V16a5 5 0 0 0-10 0v12z" fill="#e8b04a"/>
<text x="36" y="25" font-family="system-ui,sans-serif" font-size="24" font-weight="600" fill="#fff">adit</text></svg>`

/** The page is read on phones too. */
const STYLE = `
.swagger-ui .scheme-container { padding: 16px 0 }
.swagger-ui .topbar .download-url-wrapper { display: none }
@media (max-width: 640px) {
  .swagger-ui .wrapper { padding: 0 12px }
  .swagger-ui .opblock .opblock-summary { flex-wrap: wrap }
  .swagger-ui table { table-layout: fixed; word-break: break-word }
  .swagger-ui table .response-col_status { width: 64px; min-width: 64px }
  .swagger-ui table .response-col_links { display: none }
}
`
