// In a clone, taskchart is a link to a folder outside of this one, which has a React of its own.
export default { resolve: { dedupe: ['react', 'react-dom'] }, server: { fs: { allow: ['../..'] } } }
