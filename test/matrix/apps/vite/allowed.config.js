export default { server: { allowedHosts: ['.tunnels.example.test'] } }
