const { ALLOWED_HOST } = process.env

export default {
  stories: ['../src/*.stories.js'],
  framework: '@storybook/react-vite',
  core: { disableTelemetry: true, ...(ALLOWED_HOST && { allowedHosts: [ALLOWED_HOST] }) },
  viteFinal(config) {
    // Otherwise the browser connects to the port of the local server, at the host of the tunnel.
    delete config.server.hmr.port
    return config
  },
}
