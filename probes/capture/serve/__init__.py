"""Jobs and servers that trace themselves when they are asked: dynolog's protocol, vLLM, SGLang."""
