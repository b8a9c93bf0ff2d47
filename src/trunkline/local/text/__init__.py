"""The embedded text model, `local/text`: llama.cpp in a child process, with weights that need no key and no network."""
